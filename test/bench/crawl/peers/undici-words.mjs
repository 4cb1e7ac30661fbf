// What is left of a crawler when nothing but its purpose is asked for: undici fetches, zlib inflates, the header's charset
// decodes, htmlparser2 gives text and links, and the text is split into words. No pace, no address checked, no bounds but
// one of size, no charset looked for in the page, robots.txt fetched and not read, links as they are written (not resolved,
// not made unique), no language, no stems, no digest, nothing kept, nothing shipped.
// Argument: what htmlparser2 is imported from.
import { gunzipSync } from "node:zlib";
import { Client } from "undici";

const { Parser } = await import(process.argv[2]);

process.on("message", async (message) => {
  if (message?.type !== "crawl") return;
  const byOrigin = new Map();
  for (const url of message.urls) {
    const { origin, pathname } = new URL(url);
    byOrigin.set(origin, [...(byOrigin.get(origin) ?? []), pathname]);
  }
  const waiting = byOrigin.entries();
  let [pages, words, links] = [0, 0, 0];
  const worker = async () => {
    for (const [origin, paths] of waiting) {
      const client = new Client(origin, { pipelining: 1 });
      for (const path of ["/robots.txt", ...paths]) {
        const answer = await client.request({ method: "GET", path, headers: { "accept-encoding": "gzip" } });
        const body = Buffer.from(await answer.body.arrayBuffer());
        if (answer.headers["content-encoding"] !== "gzip") continue;
        const bytes = gunzipSync(body, { maxOutputLength: 5 * 1024 * 1024 });
        const read = readPage(decode(bytes, answer.headers["content-type"]));
        words += read.words.length;
        links += read.links.length;
        pages++;
      }
      await client.close();
    }
  };
  await Promise.all(Array.from({ length: message.hosts }, worker));
  if (words === 0 || links === 0) process.send({ error: "undici and htmlparser2: no words or no links" });
  process.send({ type: "crawled", pages });
});

function decode(bytes, contentType) {
  const charset = /charset=([\w-]+)/.exec(contentType)?.[1] ?? "utf-8";
  return new TextDecoder(charset).decode(bytes);
}

function readPage(html) {
  const links = [];
  let text = "";
  let hidden = 0;
  const isHidden = (name) => name === "script" || name === "style" || name === "noscript";
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === "a" && attributes.href !== undefined) links.push(attributes.href);
      if (isHidden(name)) hidden++;
      else text += " ";
    },
    ontext(piece) {
      if (hidden === 0) text += piece;
    },
    onclosetag(name) {
      if (isHidden(name)) hidden--;
    },
  });
  parser.end(html);
  const words = text.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  return { words, links };
}
