/** The local page over a real socket: what it shows, and who cannot read or use it. */
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import { parse } from "node-html-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { PageServer } from "#crawler/status/open-status";
import { statusPage } from "#crawler/status/status-page";
import { durationInWords, type StatusReport, stateWords } from "#crawler/status/status-report";
import { statusText } from "#crawler/status/status-text";
import { atEnd } from "../../support/at-end.ts";
import { until } from "../../support/until.ts";
import { onLoopback } from "../support/loopback.ts";
import { failure, sampleReport } from "./sample-report.ts";

/** The first thread of a run is bundled from sources, which takes time. */
const soonMs = 15_000;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

function ask(
  port: number,
  path: string,
  { method = "GET", host = `127.0.0.1:${port}` } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, method, headers: { host }, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece) => (text += piece));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    })
      .on("error", reject)
      .end();
  });
}

describe("the local page", () => {
  const errors = { today: { target: 1, network: 0, crawler: 0, us: 0 }, latest: [failure] };
  let port: number;
  beforeAll(async () => {
    page = new PageServer({ port: 0, report: () => sampleReport({ errors }), log: quietLog });
    await until(() => page.port !== null, soonMs);
    port = page.port!;
  });
  afterAll(() => page.close());
  let page: PageServer;

  it("reloads itself, and can be kept still", async () => {
    const [live, still] = [await ask(port, "/"), await ask(port, "/?still")];

    expect([live.headers.refresh, still.headers.refresh]).toEqual(["5", undefined]);
    expect(parse(live.text).querySelector('footer a[href="/?still"]')).not.toBeNull();
    expect(parse(still.text).querySelector('footer a[href="/"]')).not.toBeNull();
  });

  it("shows the state, each limit with a bar of its use, and the errors", async () => {
    const page = parse((await ask(port, "/")).text);

    expect(page.querySelector("h1")?.text).toContain("Crawling: 2 sites open");
    const [pages, month] = page.querySelectorAll(".limit");
    expect(pages?.querySelector("rect")?.getAttribute("width")).toBe("25");
    expect(pages?.text).toContain("50 of 200 pages");
    expect(month?.querySelector("svg")).toBeNull();
    expect(page.querySelector(".errors")?.text).toMatch(/a\.example:\s+the certificate has expired/);
    expect(page.querySelector(".days")?.text).toContain("880 of 900");
    expect(page.text).toContain("929 pages, of 950 URLs");
    expect(page.text).toContain("What hosting it means");
  });

  it("runs and loads nothing, whatever sites and coordinators send", () => {
    const words = `<script>alert(1)</script><img src=x onerror="alert(2)">`;
    const coordinator = {
      ...sampleReport().coordinator,
      contactPage: "javascript:alert(3)",
      userAgent: words,
    };
    const latest = [{ ...failure, words, host: `"><b>` }];
    const report = sampleReport({
      words,
      coordinator,
      holdingBack: [words],
      errors: { ...sampleReport().errors, latest },
    });

    const page = parse(statusPage(report));

    expect(page.querySelectorAll("script, img, b, iframe, form, link, [onerror], [style]")).toEqual([]);
    expect(page.querySelectorAll("a").map((link) => link.getAttribute("href"))).toEqual([
      "/?still",
      "/status.json",
    ]);
    expect(page.querySelector(".held li")?.text).toBe(words);
  });

  it("cannot be framed, sniffed or loaded by other origins, and loads nothing", async () => {
    const { headers } = await ask(port, "/");

    expect(headers["content-security-policy"]).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+';.*frame-ancestors 'none'$/,
    );
    expect(headers).toMatchObject({
      "cross-origin-resource-policy": "same-origin",
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("answers only under its own names: a name rebound to 127.0.0.1 reads nothing", async () => {
    const names = [
      "evil.example",
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      "127.0.0.1",
      "localhost:80",
    ];

    const foreign = await Promise.all(names.map((host) => ask(port, "/status.json", { host })));
    const own = await ask(port, "/status.json", { host: `localhost:${port}` });

    expect(foreign.map(({ status }) => status)).toEqual([421, 421, 421, 421, 421]);
    for (const { text } of foreign) expect(text).not.toContain("amber");
    expect(JSON.parse(own.text)).toMatchObject({ statusVersion: 1, crawler: { name: "amber" } });
  });

  it("cannot be used to change anything", async () => {
    const answers = await Promise.all(
      ["/pause", "/resume", "/drain", "/"].map((path) => ask(port, path, { method: "POST" })),
    );
    const asked = await Promise.all(["/pause", "/log", "/../etc/passwd"].map((path) => ask(port, path)));

    expect(answers.map(({ status }) => status)).toEqual([405, 405, 405, 405]);
    expect(asked.map(({ status }) => status)).toEqual([404, 404, 404]);
  });

  it("pauses and resumes only by the owner's link", async () => {
    const deeds: string[] = [];
    const steered = {
      pause: (reason: string) => void deeds.push(`pause ${reason}`),
      resume: () => void deeds.push("resume"),
    };
    const page = new PageServer({ port: 0, report: sampleReport, steered, log: quietLog });
    atEnd(() => page.close());
    await until(() => page.url !== null, soonMs);
    const { port, url } = page;
    const key = new URL(url!).searchParams.get("key")!;
    const send = async (path: string, body: string, headers: Record<string, string> = {}) =>
      await fetch(`http://127.0.0.1:${port}${path}`, {
        method: "POST",
        body,
        redirect: "manual",
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      });

    const seen = parse((await ask(port!, `/?key=${key}`)).text);
    const others = parse((await ask(port!, "/?key=guessed")).text);
    const refused = [
      await send("/pause", "key=guessed"),
      await send("/pause", ""),
      await send("/resume", `key=${key}`, { "content-type": "text/plain" }),
      await send("/pause", `key=${key}&more=${"x".repeat(5000)}`),
      await send("/drain", `key=${key}`),
      await send("/pause", `key=${key}`, { "sec-fetch-site": "cross-site" }),
      await send("/pause", `key=${key}`, { "sec-fetch-site": "same-site" }),
      await send("/pause", `key=${key}`, { origin: "http://evil.example" }),
      await send("/pause", `key=${key}`, { origin: "null" }),
    ];
    const paused = await send("/pause", `key=${key}`);
    await send("/resume", `key=${key}`);

    expect(seen.querySelector("form.steer button")?.text).toBe("Pause");
    expect(others.querySelectorAll("form")).toEqual([]);
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403, 405, 403, 403, 403, 403]);
    expect([paused.status, paused.headers.get("location")]).toEqual([303, `/?key=${key}`]);
    expect(deeds).toEqual(["pause on the local page", "resume"]);
    expect((await ask(port!, "/status.json")).text).not.toContain(key);
  });

  it("is restarted after an uncaught error, which ends nothing else", async () => {
    const warnings: string[] = [];
    const log = { ...quietLog, warn: (_fields: unknown, words: string) => void warnings.push(words) };
    const port = -1; // listen() throws for this port

    const page = new PageServer({ port, report: sampleReport, log });
    atEnd(() => page.close());
    await until(() => warnings.length >= 2, soonMs);

    expect(new Set(warnings)).toEqual(new Set(["the local status page has failed"]));
    expect(page.url).toBeNull();
  });

  it("answers with an error when it cannot be shown, and continues", async () => {
    let report: () => StatusReport = () => {
      throw new Error("nothing to report");
    };
    const page = new PageServer({ port: 0, report: () => report(), log: quietLog });
    atEnd(() => page.close());
    await until(() => page.port !== null, soonMs);
    const { port } = page;

    const broken = await ask(port!, "/");
    report = sampleReport;
    await until(async () => (await ask(port!, "/")).status === 200, soonMs);

    expect([broken.status, broken.text]).toEqual([500, "nothing to report\n"]);
    expect(page.port).toBe(port);
  });

  it("takes the next port when another crawler has the first", async () => {
    const { port } = await onLoopback(createServer());
    const page = new PageServer({ port, report: sampleReport, log: quietLog, retryMs: 5 });
    atEnd(() => page.close());

    await until(() => page.port !== null, soonMs);

    expect(page.port).toBeGreaterThan(port);
  });

  it("waits for a port that the previous process still holds", async () => {
    const other = await onLoopback(createServer());
    const { port } = other;
    const page = new PageServer({ port, report: sampleReport, log: quietLog, retryMs: 20 });
    atEnd(() => page.close());

    await other.close();
    await until(() => page.port !== null, soonMs);

    expect((await ask(port, "/")).status).toBe(200);
  });
});

// The report as text for administrators.

const textOf = (...given: Parameters<typeof sampleReport>) => statusText(sampleReport(...given)).join("\n");

describe("the status as text", () => {
  it("says first what the crawler does, then for whom and under which name", () => {
    const lines = statusText(sampleReport());

    expect(lines[0]).toBe("amber: Crawling: 2 sites open, 7 URLs in the last minute.");
    expect(lines).toContain("coordinator       wss://search.example/crawler");
    expect(lines).toContain("link              connected for 4 min");
    expect(lines).toContain("identity          abcdefghijkl…");
    expect(lines).toContain("seen at           192.0.2.7");
    expect(lines).toContain("under             supervisor 1, Node 20.20.2, protocol 3");
    expect(lines).toContain("runs              for 3 h 20 min, process 77");
  });

  it("shows the use of each limit, and when it starts over", () => {
    const text = textOf();

    expect(text).toContain("  Pages today       [#####...............] 50 of 200 pages, starts over in 11 h");
    expect(text).toContain("  Bytes this month                         1 KiB, no limit");
    expect(text).not.toContain("Memory");
  });

  it("names what holds the crawler back, or says that nothing does", () => {
    const held = "the day's 200 pages are used up";
    const [, pages, ...others] = sampleReport().limits;
    const limits = [{ ...pages!, used: 200, holdingBack: held }, ...others];

    const text = textOf({ holdingBack: [held], limits });

    expect(textOf()).toContain("Nothing holds it back.");
    expect(text).toContain(`Why it is idle:\n  - ${held}`);
    expect(text).toContain("[####################] 200 of 200 pages, starts over in 11 h  <- holds it back");
  });

  it("counts errors by blame, and equal ones in one line", () => {
    const other = { ...failure, host: "b.example", blame: "network" as const, code: "connect-timeout" };
    const latest = [failure, failure, failure, other, failure];

    const text = textOf({ errors: { today: { target: 4, network: 1, crawler: 0, us: 0 }, latest } });

    expect(text).toContain(
      "Errors today: 4 of sites, 1 of the network, 0 of this machine, 0 of our software.",
    );
    expect(text.match(/a\.example/g)).toHaveLength(2);
    expect(text).toContain("a.example: the certificate has expired (tls), 3 times in a row");
    expect(text).toContain("network  b.example");
  });

  it("reports releases that were not taken, and unexpected ends", () => {
    const text = textOf({ lastEnds: [{ at: failure.at, reason: "it was ended by SIGKILL" }] });

    expect(text).toContain("release           1.4.0 (new, and watched)");
    expect(text).toContain("not taken         1.5.0 (pinned): the partner refuses this version");
    expect(text).toContain("  2026-11-22 12:59 UTC  it was ended by SIGKILL");
  });

  it("passes no control sequences from outside to the terminal", () => {
    const words = "gone\u001b[2J\u0007\u202eforged";

    const text = textOf({
      holdingBack: [words],
      errors: {
        today: { target: 1, network: 0, crawler: 0, us: 0 },
        latest: [{ ...failure, words, host: words }],
      },
    });

    for (const character of "\u001b\u0007\u202e") expect(text).not.toContain(character);
    expect(text).toContain("gone [2J forged");
  });

  it("says for how long the coordinator has been unreachable", () => {
    const { coordinator, at } = sampleReport();
    const then = new Date(Date.parse(at) - 12 * 60_000).toISOString();
    const notConnectedBecause = "no link to the coordinator: nothing heard from the coordinator for 25 s";
    const down = { ...coordinator, connectedSince: null, notConnectedSince: then, notConnectedBecause };

    expect(textOf({ coordinator: down })).toContain(`${notConnectedBecause}, for 12 min`);
  });

  it.each([
    ["waiting", "Connected, idle: outside the hours."],
    ["not-connected", "Not connected: no link to the coordinator: refused."],
    ["paused", "Paused: backup."],
    [
      "draining",
      "Draining, to leave for good: the machine goes away. 2 sites are still open, 1 result waits for the coordinator.",
    ],
  ] as const)("says of a crawler that is %s why", (state, sentence) => {
    const at = "2026-11-22T12:00:00.000Z";
    const notConnectedBecause = "no link to the coordinator: refused";
    const report = sampleReport({
      state,
      holdingBack: ["outside the hours"],
      pause: { since: at, reason: "backup" },
      drain: { since: at, reason: "the machine goes away" },
      coordinator: { ...sampleReport().coordinator, notConnectedBecause },
    });

    expect(stateWords(report)).toBe(sentence);
  });

  it("writes durations as people do", () => {
    const minute = 60_000;

    expect([900, 4 * minute, 200 * minute, 120 * minute, 72 * 60 * minute].map(durationInWords)).toEqual([
      "1 s",
      "4 min",
      "3 h 20 min",
      "2 h",
      "3 days",
    ]);
  });
});

it("the pace that the coordinator asks for is shown as text and on the page", () => {
  const reason = "3 host slices due or in hand, under 4: fewer connections will do";
  const pace = { pace: "slow-down", places: 4, since: "2026-11-22T12:00:00.000Z", reason } as const;
  const words = `slow down: 4 sites at a time, since 2026-11-22 12:00 UTC (${reason})`;
  const work = { ...sampleReport().work!, pace };

  expect(textOf({ work })).toContain(words);
  expect(statusPage(sampleReport({ work }))).toContain(words);
  expect(textOf()).not.toContain("at a time");
});
