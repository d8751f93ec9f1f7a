// Searches what stands above, `SECTIONS`: each has a page, its lesson, a title and a text.
const wanted = document.getElementById("wanted");
const found = document.getElementById("found");
const howMany = document.getElementById("how-many");
const MOST = 20;

function show() {
  const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.replaceChildren();
  howMany.textContent = "";
  if (!words.length) return;
  const hits = SECTIONS.map((section) => {
    const title = `${section.lesson} ${section.title}`.toLowerCase();
    const text = section.text.toLowerCase();
    if (!words.every((word) => title.includes(word) || text.includes(word))) return null;
    return { section, rank: words.filter((word) => title.includes(word)).length, at: text.indexOf(words[0]) };
  }).filter(Boolean).sort((a, b) => b.rank - a.rank);
  howMany.textContent = hits.length ? `${hits.length} found` : "nothing found";
  for (const { section, at } of hits.slice(0, MOST)) {
    const link = document.createElement("a");
    link.href = section.page;
    link.textContent = `${section.lesson}: ${section.title}`;
    const around = document.createElement("small");
    around.textContent = section.text.slice(Math.max(0, at - 60), Math.max(0, at) + 140);
    const item = document.createElement("li");
    item.append(link, around);
    found.append(item);
  }
}
wanted.addEventListener("input", show);
show();
