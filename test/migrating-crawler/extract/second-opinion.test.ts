/** Links of generated pages, held against a second, independent parser (node-html-parser). */
import { parse } from "node-html-parser";
import { describe, expect, it } from "vitest";
import { extractPage } from "#crawler/extract/extract-page";
import { generateWorld } from "#ops/world/generate-world";
import { pageHtml, siteFurniture } from "#ops/world/page-html";
import { planSite } from "#ops/world/site-plan";

const world = generateWorld({ seed: 21, sites: 12, crawlers: 2 });

/** Its defaults drop links in unclosed tags and in script blocks. */
const options = { parseNoneClosedTags: true, blockTextElements: { script: false, style: false } };

function linksOf(html: string, url: string): string[] {
  const hrefs = parse(html, options)
    .querySelectorAll("a[href]")
    .map((anchor) => new URL(anchor.getAttribute("href") ?? "", url).href.replace(/#.*$/, ""));
  return [...new Set(hrefs.filter((href) => href.startsWith("http")))].sort();
}

describe("extraction", () => {
  it("finds the same links as another parser on every page of generated sites", async () => {
    let links = 0;
    for (const site of world.sites) {
      const plan = planSite(world, site);
      for (const page of plan.pages) {
        const url = `http://${site.host}${page.path}`;
        const html = pageHtml(plan, page, siteFurniture(1));

        const extracted = await extractPage({
          url,
          bytes: Buffer.from(html),
          contentType: "text/html; charset=utf-8",
          contentLanguage: null,
          robotsTag: undefined,
          quiet: async () => {},
        });

        const ours = [...new Set(extracted.page.links.map((link) => link.url.replace(/#.*$/, "")))].sort();
        expect(ours, url).toEqual(linksOf(html, url));
        links += ours.length;
      }
    }
    expect(links).toBeGreaterThan(200);
  });
});
