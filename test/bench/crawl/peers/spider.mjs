// spider-rs (Rust, by its Node package): one Website for each host, robots on, as many pages of each host as the
// list has, following its own links; pages and links handed to JavaScript. No text is taken out.
// Argument: the folder that the package is installed in.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const { Website } = require("@spider-rs/spider-rs");

process.on("message", async (message) => {
  if (message?.type !== "crawl") return;
  const starts = new Map();
  for (const url of message.urls) {
    const { host } = new URL(url);
    starts.set(host, { url: starts.get(host)?.url ?? url, pages: (starts.get(host)?.pages ?? 0) + 1 });
  }
  const waiting = starts.values();
  let pages = 0;
  const worker = async () => {
    for (const { url, pages: budget } of waiting) {
      const website = new Website(url)
        .withRespectRobotsTxt(true)
        .withUserAgent("bench")
        .withBudget({ "*": budget })
        .withReturnPageLinks(true)
        .build();
      await website.crawl((error, page) => {
        if (error === null && page.content.length > 1000) pages++;
      });
    }
  };
  await Promise.all(Array.from({ length: message.hosts }, worker));
  process.send({ type: "crawled", pages });
});
