# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · Skill exam
#
# *30 to 45 minutes · 15 questions over lessons 01 to 08 · passed with 70 %*
#
# You have built the loops and measured them. Here you decide: a log comes in, a colleague makes a claim, a bill is due.
# What do you do first?
#
# | Part | What happens there |
# |---|---|
# | [Rules](#Rules) | what counts, in a minute |
# | [Before you begin](#Before-you-begin) | are you ready? |
# | [The exam](#The-exam) | 15 questions, drawn for you |
# | [Hand in](#Hand-in) | the result, and the reasons |
# | [What next](#What-next) | after passing, and after not passing yet |

# %%
from autograder import check_quiz, exam

# %% [markdown]
# ## Rules
#
# - **15 questions**, at least one from each lesson, drawn from a bank of 64. You pass with 70 %, which is 11 right
#   answers.
# - **Take your time.** No clock runs, unless your course sets one: then the exam says so before it begins. Paper, the
#   lessons and this Python are allowed; in your work they are, too.
# - **Each answer is saved when you give it**, in a file beside this notebook. Close the page, restart the kernel, take
#   the folder to another machine: the same questions are there, with your answers.
# - **Reasons come at the end.** Until you hand in, you may change every answer. Then the attempt is closed, and each
#   question says why.
# - **Three questions are measured.** Their key is what this machine measures when you hand in. That takes a few seconds.
# - **Another attempt has other questions.** Four attempts have none in common. The best one counts, so a further attempt
#   costs nothing.
#
# Of two good options, take the one that you would do *first*.
#
# ## Before you begin
#
# Each line is a thing that you can do after its lesson. Where you hesitate, read there first.
#
# | Lesson | You can |
# |---|---|
# | [01 · Efficient training loops](../01_efficient_training_loops/01_efficient_training_loops.ipynb) | read from three lines of a log which station of the loop is the slowest |
# | [02 · Mixed precision](../02_mixed_precision/02_mixed_precision.ipynb) | tell overflow from underflow, and put scaling, clipping and step in order |
# | [03 · Batch size and gradient accumulation](../03_batch_size_and_accumulation/03_batch_size_and_accumulation.ipynb) | work out updates per epoch, and weigh a last, short window rightly |
# | [04 · Checkpointing and early stopping](../04_checkpointing_and_early_stopping/04_checkpointing_and_early_stopping.ipynb) | list what a checkpoint must hold, and say what happens without each item |
# | [05 · Hyperparameter tuning](../05_hyperparameter_tuning/05_hyperparameter_tuning.ipynb) | tell a better config from a luckier seed |
# | [06 · Distributed training basics](../06_distributed_training/06_distributed_training.ipynb) | say at which moment processes wait for each other, and for what |
# | [07 · Managing GPUs and cost](../07_gpus_and_cost/07_gpus_and_cost.ipynb) | turn a trace and a price into the next change |
# | [08 · Reproducibility with seeds and configs](../08_reproducibility/08_reproducibility.ipynb) | say why two runs differ, and whether they should |
#
# ## The exam
#
# The next cell begins your first attempt. Run it again at any time: it goes on where you were. Click, or use the arrow
# keys. The button below the last question hands in; while answers are missing, it asks once more.

# %%
exam("09")

# %% [markdown]
# No buttons? Then the cell above shows the questions as text. Answer in a cell, as often as you like. In `"09.1.3"` 09 is
# the exam, 1 the attempt and 3 the question:

# %%
# from autograder import answer
# answer("09.1.3", "b")

# %% [markdown]
# ## Hand in
#
# The button hands in and shows the reasons at once. The cell below does it without buttons. With all 15 questions answered
# it closes the attempt, also when it runs as part of *Run All*; before that it names the open ones, and changes nothing.
# Then run the cell of the exam again: now each question gives its reason.

# %%
check_quiz("09")

# %% [markdown]
# ## What next
#
# **Passed.** You choose the next change by a measurement, and you know what a number may claim. Go on to the
# [mini project](../10_mini_project/10_mini_project.ipynb): it asks for all of it at once, on your own data.
#
# **Not yet.** The card above names the lessons and the topics. Take one after the other:
#
# 1. Read the reason under the question. Could you have known it from the log or the numbers that were given?
# 2. Go to the topic in its lesson. Look at "When it goes wrong", and run the cell that reproduces the mistake.
# 3. Change one thing in that cell, predict what happens, and run it.
# 4. Then begin another attempt, with the button under the questions. In a cell it is:

# %%
# exam("09", new_attempt=True)

# %% [markdown]
# While an attempt is open, the line goes on with it. Put the `#` back when the new attempt has begun, or the next run
# after handing in begins one more.
#
# The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.
#
# An honest word: this is a release for practice. The keys come with the course, lightly hidden, and the file with your
# answers is yours. Whoever looks them up passes an exam, and learns nothing.
