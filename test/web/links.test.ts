/** Every link of every page works, for each role: pages are followed from the first one, each path once. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everyOperation } from "#coordinator/room-operations";
import { alertRules } from "#coordinator/tell/overview/alert-rules";
import { type NavigationGroup, navigationFor, navigationOf } from "#coordinator/web/navigation";
import { type Role, scopesOf } from "#core/actor";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedFleet } from "../support/seed-fleet.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedPage, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { testAccess, webServer } from "../support/web-server.ts";

/** More pages than the tiny world has; the same page with other filters counts once. */
const mostPages = 400;

const navigation = navigationOf(await everyOperation());

const database = await forThisFile(testDatabase());
let app: FastifyInstance;

beforeAll(async () => {
  await seedWorld(database.pool);
  await seedFleet(database.pool);
  await seedOperation(database.pool);
  await seedUrl(database.pool, { url: "https://www.example.org/ferry" });
  const ferry = {
    url: "https://www.example.org/ferry",
    title: "The ferry",
    text: "The ferry leaves at ten.",
  };
  await seedPage(database.pool, ferry);
  app = webServer(database, {
    parts: await everyPart(database),
    access: testAccess(database, () => worldNow, false),
  });
});
afterAll(async () => await app?.close());

const starts: Readonly<Record<Role, readonly string[]>> = {
  operator: ["/", "/who?q=www.example.org", "/search?q=ferry", "/api", ...alertRules.map(({ link }) => link)],
  staff: ["/", "/who?q=www.example.org", "/search?q=ferry"],
  partner: ["/account", "/crawlers/athens"],
};

describe("no link is dead", () => {
  it.each(["operator", "staff", "partner"] as const)("for %s", async (role) => {
    const { headers } = await signIn(database, role);

    const { dead, seen } = await follow(starts[role], headers);

    expect(dead).toEqual([]);
    expect(seen).toBeGreaterThan(role === "partner" ? 5 : 25);
    expect(seen).toBeLessThan(mostPages);
  });
});

it.each(["operator", "staff", "partner"] as const)(
  "what the navigation has is shown to a %s who may open it, and to no other",
  async (role) => {
    const { headers } = await signIn(database, role, { name: `a ${role}` });
    const actor = { name: role, role, scopes: scopesOf[role], crawlers: [] };
    const shown = pathsIn(navigationFor(actor, navigation));

    const { body } = await app.inject({ url: "/account", headers });
    const entries = navigationFor(actor, navigation).flatMap((group) => group.entries);
    expect(entries.filter(({ path }) => !body.includes(`<li><a href="${path}"`))).toEqual([]);
    for (const path of pathsIn(navigation)) {
      const { statusCode } = await app.inject({ url: path, headers: { ...headers, accept: "text/html" } });
      expect([path, statusCode === 200]).toEqual([path, shown.includes(path)]);
    }
  },
);

const pathsIn = (groups: readonly NavigationGroup[]) =>
  groups.flatMap(({ entries }) => entries.flatMap((entry) => entry.tabs ?? [entry])).map(({ path }) => path);

interface Found {
  readonly path: string;
  readonly on: string;
}

/** Follows the links of pages; of addresses with different queries, `mostAsked` for each path. */
async function follow(from: readonly string[], headers: { readonly cookie: string }) {
  const known = new Set(from);
  const asked = new Map<string, number>();
  const waiting: Found[] = from.map((path) => ({ path, on: "the start" }));
  const dead: string[] = [];
  for (const { path, on } of waiting) {
    const answer = await app.inject({ url: path, headers });
    if (answer.statusCode >= 400) dead.push(`${answer.statusCode} ${path} on ${on}`);
    if (known.size >= mostPages || !String(answer.headers["content-type"]).startsWith("text/html")) continue;
    for (const link of linksOf(answer.body, path)) {
      const name = new URL(link, base).pathname;
      const times = asked.get(name) ?? 0;
      if (known.has(link) || times >= mostAsked) continue;
      asked.set(name, times + 1);
      known.add(link);
      waiting.push({ path: link, on: path });
    }
  }
  return { dead, seen: known.size };
}

const base = "http://crawl.example.org";
const mostAsked = 3;

/** The links of a page within this site, without fragments; also of styles, scripts and forms. */
function linksOf(markup: string, path: string): string[] {
  const links = [...markup.matchAll(/\s(?:href|src)="([^"]*)"/g)].map(([, link]) =>
    (link as string).replaceAll("&amp;", "&").replaceAll("&#39;", "'").replaceAll("&quot;", '"'),
  );
  const here = links.map((link) => new URL(link, base + path)).filter(({ origin }) => origin === base);
  return [...new Set(here.map(({ pathname, search }) => pathname + search))];
}
