/** The three groups of the navigation: what they contain, for whom, and where a page is in them. */
import { describe, expect, it } from "vitest";
import { everyOperation } from "#coordinator/room-operations";
import { html } from "#coordinator/web/html";
import { type NavigationGroup, navigationFor, navigationOf, placeOf } from "#coordinator/web/navigation";
import { nobody, pageFrame } from "#coordinator/web/page-frame";
import { type Actor, anybody, scopesOf } from "#core/actor";

const pages = await everyOperation();
const navigation = navigationOf(pages);

const operator: Actor = { name: "anna", role: "operator", scopes: scopesOf.operator, crawlers: [] };
const partner: Actor = { name: "chris", role: "partner", scopes: [], crawlers: ["athens", "a/b"] };

const names = (groups: readonly NavigationGroup[]) =>
  Object.fromEntries(groups.map(({ name, entries }) => [name, entries.map((entry) => entry.name)]));

const where = (path: string, actor = operator) => {
  const place = placeOf(path, navigationFor(actor, navigation));
  return place && [place.group.name, place.entry.name, place.tab?.name ?? null];
};

describe("the navigation", () => {
  it("has three groups of at most six entries each, and no path twice", () => {
    const tabs = navigation.flatMap(({ entries }) => entries.flatMap((entry) => entry.tabs ?? [entry]));
    const paths = tabs.flatMap(({ path, also = [] }) => [path, ...also]);

    expect(navigation).toHaveLength(3);
    for (const { entries } of navigation) expect(entries.length).toBeLessThanOrEqual(6);
    expect(new Set(paths).size).toBe(paths.length);
  });

  it("finds a page's place by the longest path above it", () => {
    expect(where("/")).toEqual(["Crawl", "Overview", null]);
    expect(where("/fleet")).toEqual(["Fleet", "Crawlers", null]);
    expect(where("/crawlers/berlin")).toEqual(["Fleet", "Crawlers", null]);
    expect(where("/fleet/queue")).toEqual(["Crawl", "Queue", "Queue"]);
    expect(where("/registry/jobs/7")).toEqual(["Crawl", "Registry", null]);
    expect(where("/submissions/3")).toEqual(["Sites and webmasters", "Channels", "Submit"]);
    expect(where("/account")).toBeNull();
    expect(where("/fleetwide")).toBeNull();
  });

  it("is open at the page's group, or at the first where the page is in none", () => {
    const openAt = (path: string) => {
      const viewer = { ...nobody, actor: operator };
      const page = pageFrame({ version: "1", path, title: "Page", body: html`<h1>Page</h1>`, viewer }, pages);
      return [...page.matchAll(/<details name="group" open><summary[^>]*>([^<]+)/g)].map(([, name]) => name);
    };

    expect([openAt("/fleet/trust"), openAt("/account")]).toEqual([["Fleet"], ["Crawl"]]);
  });

  it("hides what a person may not open, and links to the first tab that they may", () => {
    expect(names(navigationFor(anybody(true), navigation))).toEqual({
      Crawl: ["Overview", "Look up", "Explore", "Queue", "Reports", "Registry"],
      Fleet: ["Crawlers", "Alerts", "Policies"],
      "Sites and webmasters": ["Sites", "Search", "Changes", "Channels", "Caps", "About this crawler"],
    });
    expect(names(navigationFor(anybody(false), navigation))).toEqual({
      "Sites and webmasters": ["About this crawler"],
    });
    expect(names(navigationFor(partner, navigation))).toEqual({
      "Your crawlers": ["athens", "a/b"],
      "Sites and webmasters": ["About this crawler"],
    });
    expect(where("/crawlers/a%2Fb", partner)).toEqual(["Your crawlers", "a/b", null]);
  });
});
