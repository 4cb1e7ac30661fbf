// Crawlee's CheerioCrawler as its guide sets it up: robots on, the page's text and links taken, a data set filled.
// Generously: nothing is written to disk, no log. Argument: the folder that the package is installed in.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const { CheerioCrawler, Configuration, log } = require("@crawlee/cheerio");
log.setLevel(log.LEVELS.ERROR);

process.on("message", async (message) => {
  if (message?.type !== "crawl") return;
  let pages = 0;
  const crawler = new CheerioCrawler(
    {
      minConcurrency: message.hosts,
      maxConcurrency: message.hosts,
      maxRequestsPerCrawl: message.urls.length,
      respectRobotsTxtFile: true,
      async requestHandler({ $, request, enqueueLinks, pushData }) {
        $("script, style, noscript").remove();
        await pushData({
          url: request.url,
          title: $("title").text(),
          description: $('meta[name="description"]').attr("content"),
          headings: $("h1, h2, h3")
            .map((_, heading) => $(heading).text())
            .get(),
          text: $("body").text().replace(/\s+/g, " "),
        });
        await enqueueLinks({ strategy: "same-hostname" });
        pages++;
      },
      failedRequestHandler({ request }, error) {
        process.send({ error: `crawlee: ${request.url}: ${error.message}` });
      },
    },
    new Configuration({ persistStorage: false }),
  );
  await crawler.run(message.urls);
  await crawler.teardown();
  process.send({ type: "crawled", pages });
});
