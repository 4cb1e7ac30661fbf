// The floor: undici fetches and zlib inflates, and nothing is done with the pages.
import { gunzipSync } from "node:zlib";
import { Client } from "undici";

process.on("message", async (message) => {
  if (message?.type !== "crawl") return;
  const byOrigin = new Map();
  for (const url of message.urls) {
    const { origin, pathname } = new URL(url);
    byOrigin.set(origin, [...(byOrigin.get(origin) ?? []), pathname]);
  }
  const waiting = byOrigin.entries();
  let pages = 0;
  const worker = async () => {
    for (const [origin, paths] of waiting) {
      const client = new Client(origin, { pipelining: 1 });
      for (const path of ["/robots.txt", ...paths]) {
        const answer = await client.request({ method: "GET", path, headers: { "accept-encoding": "gzip" } });
        const body = Buffer.from(await answer.body.arrayBuffer());
        if (answer.headers["content-encoding"] !== "gzip") continue;
        gunzipSync(body, { maxOutputLength: 5 * 1024 * 1024 });
        pages++;
      }
      await client.close();
    }
  };
  await Promise.all(Array.from({ length: message.hosts }, worker));
  process.send({ type: "crawled", pages });
});
