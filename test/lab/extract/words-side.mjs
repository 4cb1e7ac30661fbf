// What a crawler of one's own would do with a page at least: htmlparser2's tokens, the title, the links made absolute, the
// text outside scripts and styles, and how often each of its words stands there. No main text, no language, no stems, no
// positions, no dates, no bounds.
import { readFileSync } from "node:fs";
import { Parser } from "htmlparser2";

const sets = Object.fromEntries(
  Object.entries(JSON.parse(readFileSync(process.argv[2], "utf8"))).map(([name, pages]) => [
    name,
    pages.map((page) => ({ ...page, bytes: Buffer.from(page.bytes, "base64") })),
  ]),
);

function extract({ url, bytes }) {
  const links = [];
  const words = new Map();
  const texts = [];
  let title = "";
  let skipped = 0;
  let isTitle = false;
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === "script" || name === "style") skipped++;
      else if (name === "title") isTitle = true;
      else if (name === "a" && attributes.href !== undefined) {
        try {
          links.push(new URL(attributes.href, url).href);
        } catch {}
      }
    },
    ontext(text) {
      if (isTitle) title += text;
      else if (skipped === 0) texts.push(text);
    },
    onclosetag(name) {
      if (name === "script" || name === "style") skipped--;
      else if (name === "title") isTitle = false;
      else texts.push(" ");
    },
  });
  parser.write(Buffer.from(bytes).toString("utf8"));
  parser.end();
  const text = texts.join("");
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
    words.set(word, (words.get(word) ?? 0) + 1);
  return { title, links, text, words };
}

let made = null;

process.on("message", (message) => {
  if (message?.type === "pass") {
    for (let round = 0; round < message.passes; round++)
      for (const page of sets[message.set]) made = extract(page);
    process.send({ type: "passed", links: made?.links.length });
  }
});
process.send({ type: "ready" });
