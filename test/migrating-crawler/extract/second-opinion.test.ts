/** Compares links of generated pages with an independent parser (node-html-parser). */
import { describe, expect, it } from "vitest";
import { extractPage } from "#crawler/extract/extract-page";
import { generateWorld } from "#ops/world/generate-world";
import { pageHtml, siteFurniture } from "#ops/world/page-html";
import { planSite } from "#ops/world/site-plan";
import { bodyOf } from "../support/extracted.ts";

const world = generateWorld({ seed: 21, sites: 12, crawlers: 2 });

describe("extraction", () => {
  it("finds the same links as another parser on every page of generated sites", async () => {
    let links = 0;
    for (const site of world.sites) {
      const plan = planSite(world, site);
      for (const page of plan.pages) {
        const url = `http://${site.host}${page.path}`;
        const html = pageHtml(plan, page, siteFurniture(1));

        const extracted = await extractPage(bodyOf(html, { url, wantsSecondOpinion: true }));

        expect(extracted.secondOpinion, url).toEqual({ onlyOurs: [], onlyTheirs: [] });
        links += extracted.page.links.length;
      }
    }
    expect(links).toBeGreaterThan(200);
  });
});
