/** `who` about politeness and pages, in plain words: robots.txt, pace, connection, redirects, near-duplicates. */
import { beforeEach, expect, it } from "vitest";
import { answerWho } from "#coordinator/tell/who/answer";
import { connectionText } from "#coordinator/tell/who/explain-host";
import { whoOperations } from "#coordinator/tell/who/who-ask";
import { newShippingWorld, text } from "../results/shipping-world.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { shownAs } from "../support/shown-as.ts";
import { noon, scope, secondsAfterNoon } from "../support/store-world.ts";

const world = await forThisFile(newShippingWorld());
beforeEach(async () => await world.reset());

const root = "http://a.example/";
const who = async (question: string, at = noon) =>
  await answerWho(
    question,
    {
      reads: everyRead(world.pool, () => performance.now()),
      resolver: { resolve: async () => ({ failed: "nobody asks" }) },
      scope,
    },
    at,
  );

it("the host's pace is explained, during its rest and after", async () => {
  const north = await world.delegatedHost("north", root, `${root}x`);
  const pace = { crawlDelayMs: 7500, backOffMs: 600_000, backedOffMsAgo: 0, usualMs: 80 };
  await world.ship(
    north,
    {
      [root]: {
        outcome: { type: "http-error", status: 429, retryAfterSeconds: null },
        result: { pace, hostDelayMs: 60_000 },
      },
    },
    noon,
  );

  const answer = await who("a.example", secondsAfterNoon(30));
  const later = await who("a.example", secondsAfterNoon(3600));

  expect(answer.standing.find(({ code }) => code === "politeness")).toEqual({
    code: "politeness",
    stops: true,
    words:
      "Politeness: no request to the host before 2030-01-01 12:01:00 UTC, in 30 s: it had too much (status 429 or 503) 30 s ago, " +
      "and is backed off from for 10 min; and its robots.txt asks for 7.5 s between requests (Crawl-delay).",
  });
  expect(later.standing.find(({ code }) => code === "slow-pace")?.words).toBe(
    "The host is asked slowly: its robots.txt asks for 7.5 s between requests (Crawl-delay).",
  );
  expect(answer.host?.pace).toEqual({
    crawlDelayMs: 7500,
    backOffMs: 600_000,
    backedOffAt: noon.toISOString(),
    usualMs: 80,
    tolerated: null,
  });
});

it("the rate that the host tolerates is explained until a crawler reports no limit", async () => {
  const north = await world.delegatedHost("north", root, `${root}x`, `${root}y`);
  const tolerated = {
    ...{ perHour: 1680.04, limitedBy: "refused" as const, refusedPerHour: 3600 },
    ...{ refusedMsAgo: 7_200_000, saidMsAgo: 0 },
  };
  const pace = { crawlDelayMs: 0, backOffMs: 0, backedOffMsAgo: 0, usualMs: 80 };
  await world.ship(
    north,
    { [root]: { result: { pace: { ...pace, tolerated }, hostDelayMs: 60_000 } } },
    noon,
  );

  const answer = await who("a.example", secondsAfterNoon(30));
  await world.ship(north, { [`${root}x`]: { result: { pace } } }, secondsAfterNoon(120));
  const free = await who("a.example", secondsAfterNoon(130));

  const why =
    "it tolerates 28 requests per minute: it answered 429 or 503 at 60 requests per minute, 2 hours ago";
  expect(answer.standing.find(({ code }) => code === "politeness")?.words).toBe(
    `Politeness: no request to the host before 2030-01-01 12:01:00 UTC, in 30 s: ${why}.`,
  );
  expect(shownAs(whoOperations.who, answer).words).toContain("Tolerates 28 requests per minute");
  expect(answer.host?.pace?.tolerated).toEqual({
    ...{ perHour: 1680, limitedBy: "refused", refusedPerHour: 3600 },
    ...{ refusedAt: "2030-01-01T10:00:00.000Z", at: noon.toISOString() },
  });
  expect(free.host?.pace?.tolerated).toBeNull();
});

it("an unavailable robots.txt stops the host, with the time since when", async () => {
  const north = await world.delegatedHost("north", root, `${root}x`);
  const robots = { state: "unreachable" as const, crawlDelaySeconds: null, sitemaps: [] };
  const outcome = { type: "refused-by-robots", rule: "robots.txt cannot be had" } as const;
  await world.ship(north, { [root]: { outcome, result: { robots } } }, noon);

  const host = await who("a.example", secondsAfterNoon(300));
  const url = await who(`${root}x`, secondsAfterNoon(300));

  expect(host.standing.find(({ code }) => code === "robots-closed")).toEqual({
    code: "robots-closed",
    stops: true,
    words:
      "Its robots.txt could not be reached, so all is disallowed (RFC 9309), as it was found 5 min ago. It is asked for again after a day.",
  });
  expect(url.standing.find(({ code }) => code === "robots-closed")?.stops).toBe(false);
  expect(host.host?.robots).toEqual({ state: "unreachable", at: noon.toISOString() });
});

it("the connection, the robots.txt and the budget are one line of facts", async () => {
  const north = await world.delegatedHost("north", root);
  const robots = { state: "rules" as const, crawlDelaySeconds: 2, sitemaps: [] };
  const connection = { http: "2", tls: "TLSv1.3" } as const;
  await world.ship(north, { [root]: { page: text(1), result: { robots, connection } } }, noon);

  const { host } = await who("a.example");

  expect(host).toMatchObject({ robots: { state: "rules" }, pace: { crawlDelayMs: 2000 } });
  expect(connectionText(host!.connection!)).toBe("HTTP/2, TLSv1.3");
  expect(connectionText({ http: "1.1", tls: null })).toBe("HTTP/1.1, without TLS");
});

it("a URL shows its target, the redirects that led to it, and whose text it has", async () => {
  const north = await world.delegatedHost("north", root, "http://b.example/", "http://b.example/x");
  const location = "http://b.example/far";
  await world.ship(
    north,
    {
      [root]: { outcome: { type: "redirected", status: 301, location } },
      "http://b.example/": {
        page: { ...text(1), title: "One", publishedAt: "2029-01-02", declaredLanguage: "en-GB" },
      },
    },
    noon,
  );
  await world.ship(north, { [location]: { page: text(1) } }, secondsAfterNoon(1));

  const from = await who(root);
  const to = await who(location);

  expect(from.standing.find(({ code }) => code === "redirects")?.words).toBe(
    "It redirects, with status 301: to http://b.example/far.",
  );
  expect(to.url).toMatchObject({
    redirects: 1,
    worth: "near-duplicate",
    page: { duplicateOf: "http://b.example/" },
  });
  expect(to.standing.find(({ code }) => code === "near-duplicate")?.words).toBe(
    "Its text is nearly that of http://b.example/; a search shows one of the two.",
  );
  expect((await who("http://b.example/")).url?.page).toMatchObject({
    title: "One",
    publishedAt: "2029-01-02T00:00:00.000Z",
    declaredLanguage: "en-GB",
    duplicateOf: null,
  });
});

it("a page that says “not found” counts as failing, and as gone after three times", async () => {
  const north = await world.delegatedHost("north", root);
  const soft = { page: { ...text(2), softNotFound: true } };
  await world.ship(north, { [root]: soft }, noon);

  const failing = await who(root);
  for (const day of [2, 4]) await world.ship(north, { [root]: soft }, secondsAfterNoon(86_400 * day));
  const gone = await who(root);

  expect(failing.standing.find(({ code }) => code === "failing")?.words).toBe(
    "The last 1 attempt failed: the page says “not found”, though with status 200.",
  );
  expect(gone.standing.find(({ code }) => code === "gone")?.words).toContain("says “not found”");
});
