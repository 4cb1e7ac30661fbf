/** Alert delivery: webhooks to a receiver that checks signatures, mail to an SMTP server, and the database that stores what was sent. */
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Pool } from "pg";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AlertFacts } from "#coordinator/tell/overview/alert-facts";
import { alertsOf } from "#coordinator/tell/overview/alert-rules";
import { alertsSettings, type EmailSettings } from "#coordinator/tell/overview/alerts/alert-settings";
import { channelStates, createAlertStore, notedAlerts } from "#coordinator/tell/overview/alerts/alert-store";
import { emailChannel, webhookChannel } from "#coordinator/tell/overview/alerts/channel-client";
import type { AlertMessage, Delivery, SeenAlert } from "#coordinator/tell/overview/alerts/notices";
import {
  noteAlerts,
  OwnTelling,
  sendMessages,
  type TellPorts,
} from "#coordinator/tell/overview/alerts/tell-alerts";
import { createNameResolver } from "#core/name-resolver";
import { makeCertificate } from "../../migrating-crawler/support/secure-origin.ts";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { athens, hourMs, nowMs, well, withOwn } from "../alert-world.ts";

const secret = randomBytes(32);
const resolver = createNameResolver({ servers: [] });
const pages = "https://search.example";
const never = new AbortController().signal;

const database = await forThisFile(testDatabase());
let url = "";
/** What the receiver took, checked. */
let received: {
  readonly id: string;
  readonly body: { text: string; data: { alerts: Record<string, unknown>[] } };
}[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString();
    const header = (name: string) => String(request.headers[name]);
    const [id, timestamp] = [header("webhook-id"), header("webhook-timestamp")];
    const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
    const isOurs = header("webhook-signature") === `v1,${signature}`;
    const isFresh = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300;
    if (!isOurs || !isFresh) return response.writeHead(401).end("wrong signature");
    received.push({ id, body: JSON.parse(body) });
    answer(request, response);
  });
});

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/alerts?token=1`;
});
afterAll(async () => {
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});
beforeEach(async () => {
  received = [];
  answer = (_request, response) => response.writeHead(204).end();
  await database.pool.query("truncate alert_state, alert_channel");
});

const hook = ({
  key = secret,
  at = url,
  allowed = ["127.0.0.0/8"],
  timeoutMs = 10_000,
}: {
  readonly key?: Buffer;
  readonly at?: string;
  readonly allowed?: boolean | string[];
  readonly timeoutMs?: number;
} = {}) =>
  webhookChannel({ name: "pager", url: at, least: "warning", allowSpecialPurpose: allowed }, key, {
    ...{ resolver, pages, userAgent: "Nearcrawl/test", now: () => new Date(), timeoutMs },
  });

const message: AlertMessage = {
  id: "msg_1",
  madeAt: new Date("2026-03-01T12:00:00Z"),
  told: [
    {
      ...{ name: "crawler-offline", severity: "warning", state: "began", targets: ["berlin"] },
      ...{ words: "Offline: berlin.\r\nBcc: all@example.org", advice: "Write to the partner." },
      ...{ since: "2026-03-01T11:00:00.000Z", endedAt: null },
    },
  ],
};

it.each([
  ["mail.example.org", false],
  ["127.0.0.1", true],
])("mail without TLS is accepted only for this machine: %s", (host, isTaken) => {
  const email = {
    host,
    tls: "none",
    from: "nearcrawl@example.org",
    to: ["ops@example.org"],
    least: "warning",
  };
  expect(alertsSettings.safeParse({ email }).success).toBe(isTaken);
});

describe("a webhook", () => {
  it("receives signed alerts with targets, times and the runbook", async () => {
    expect(await hook().send(message, never)).toEqual({ type: "delivered" });

    expect(received[0]?.body.data.alerts).toEqual([
      expect.objectContaining({
        ...{ name: "crawler-offline", severity: "warning", state: "began", targets: ["berlin"] },
        ...{ since: "2026-03-01T11:00:00.000Z", endedAt: null, targetCount: 1 },
        runbook: "https://search.example/alerts#crawler-offline",
      }),
    ]);
    expect(received[0]?.body.text).toBe("Warning: Offline: berlin. Bcc: all@example.org (crawler-offline)");
    expect(await hook({ key: randomBytes(32) }).send(message, never)).toEqual({
      ...{ type: "failed", words: "status 401: wrong signature", isFinal: false },
    });
  });

  it("that fails, hangs, redirects or is gone counts as failed in time, and redirects are not followed", async () => {
    const sent = async (answering: typeof answer, timeoutMs?: number) => {
      answer = answering;
      return await hook(timeoutMs === undefined ? {} : { timeoutMs }).send(message, never);
    };
    const status =
      (code: number, headers = {}, body = "") =>
      (_: IncomingMessage, response: ServerResponse) =>
        void response.writeHead(code, headers).end(body);

    expect([
      await sent(status(500, {}, "no\nroom")),
      await sent(() => {}, 200),
      await sent(status(307, { location: "/other" })),
      await sent(status(410)),
    ]).toEqual([
      { type: "failed", words: "status 500: no room", isFinal: false },
      { type: "failed", words: "no answer in time" },
      { type: "failed", words: "status 307: redirects are not followed" },
      { type: "failed", words: "status 410", isFinal: true },
    ]);
    expect(received).toHaveLength(4);
  });

  it.each([
    ["a loopback address", {}, "special-purpose address (127.0.0.0/8 loopback"],
    ["a mapped loopback address", { to: "[::ffff:127.0.0.1]" }, "special-purpose"],
    ["a public address without https", { at: "http://192.0.9.1/" }, "without https"],
  ])(
    "is not sent to %s unless its channel allows that",
    async (_, { to = "127.0.0.1", at }: { to?: string; at?: string }, words) => {
      const refused = hook({ allowed: false, at: at ?? url.replace("127.0.0.1", to) });

      expect(await refused.send(message, never)).toMatchObject({ words: expect.stringContaining(words) });
      expect(received).toEqual([]);
    },
  );
});

describe("e-mail", () => {
  const certificate = makeCertificate("localhost");
  let mails: {
    readonly from: string;
    readonly to: readonly string[];
    readonly text: string;
    readonly secure: boolean;
  }[] = [];
  const open: SMTPServer[] = [];
  afterAll(async () => {
    for (const server of open) await new Promise<void>((resolve) => server.close(() => resolve()));
    certificate.remove();
  });

  async function serve(options: SMTPServerOptions): Promise<number> {
    const server = new SMTPServer({
      ...{ key: certificate.key, cert: certificate.certificate, logger: false, disableReverseLookup: true },
      onAuth: ({ username, password }, _session, done) =>
        username === "nearcrawl" && password === "right"
          ? done(null, { user: "1" })
          : done(new Error("wrong password")),
      onData: (stream, { envelope, secure }, done) => {
        let text = "";
        stream.on("data", (chunk) => {
          text += chunk;
        });
        stream.on("end", () => {
          const { mailFrom, rcptTo } = envelope;
          const from = mailFrom === false ? "" : mailFrom.address;
          mails.push({ from, to: rcptTo.map(({ address }) => address), text, secure });
          done();
        });
      },
      ...options,
    });
    server.on("error", () => {});
    open.push(server);
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    return (server.server.address() as AddressInfo).port;
  }

  const settings = (port: number): EmailSettings => ({
    ...{ host: "localhost", port, tls: "starttls", user: "nearcrawl", password: null, passwordFile: null },
    ...{ from: "nearcrawl@example.org", to: ["ops@example.org", "noc@example.org"], least: "warning" },
  });
  const mail = (
    port: number,
    changed: { password?: string; authorities?: string | null; timeoutMs?: number } = {},
  ) => {
    const { authorities = certificate.certificate, password = "right", timeoutMs = 5000 } = changed;
    return emailChannel(settings(port), password, {
      ...{ pages, timeoutMs },
      ...(authorities === null ? {} : { authorities }),
    });
  };
  beforeEach(() => {
    mails = [];
  });

  it("goes over verified TLS to all recipients, and no name injects a header", async () => {
    const port = await serve({});

    expect(await mail(port).send(message, never)).toEqual({ type: "delivered" });
    const [head = "", body = ""] = mails[0]!.text.split("\r\n\r\n");
    expect(mails[0]).toMatchObject({
      from: "nearcrawl@example.org",
      to: ["ops@example.org", "noc@example.org"],
      secure: true,
    });
    expect(head).toContain("Subject: [Nearcrawl] 1 warning: crawler-offline");
    expect(head).toContain("Message-ID: <msg_1@example.org>");
    expect(head).not.toMatch(/^bcc:/im);
    expect(body).toContain("Offline: berlin. Bcc: all@example.org");
    expect(body).toContain("https://search.example/alerts#crawler-offline");
  });

  it("reports in the server's words what is wrong: the password, the certificate, no TLS, no answer", async () => {
    const port = await serve({});
    const plain = await serve({ hideSTARTTLS: true, disabledCommands: ["STARTTLS"] });
    const silent = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));

    expect(await mail(port, { password: "wrong" }).send(message, never)).toMatchObject({
      words: expect.stringMatching(/^535 .*wrong password/),
    });
    expect(await mail(port, { authorities: null }).send(message, never)).toMatchObject({
      words: expect.stringContaining("certificate"),
    });
    expect(await mail(plain).send(message, never)).toMatchObject({ type: "failed" });
    const late = mail((silent.address() as AddressInfo).port, { timeoutMs: 100 });
    expect(await late.send(message, never)).toMatchObject({ type: "failed" });
    silent.close();
    expect(mails).toEqual([]);
  });
});

describe("over the database", () => {
  const offline: SeenAlert = {
    ...{ name: "crawler-offline", severity: "warning", targets: ["berlin"] },
    ...{ words: "Offline for more than 60 minutes: berlin.", advice: "" },
  };
  const now = () => new Date();
  const offlineCrawler = {
    ...athens,
    name: "berlin",
    state: "offline",
    lastSeenMs: nowMs - 2 * hourMs,
  } as const;
  const facts = (isOffline: boolean): AlertFacts => ({
    ...well,
    crawlers: isOffline ? [athens, offlineCrawler] : [athens],
  });
  const atOnce = { digestMs: 0, againMs: 0 };
  const ports = (changed: Partial<TellPorts> = {}): TellPorts => ({
    ...{ store: createAlertStore(database.pool), channels: [hook()], facts: async () => facts(true) },
    ...{ newId: () => `msg_${randomUUID()}`, chance: () => 0.5, now },
    ...changed,
  });
  const due = async () =>
    await database.pool.query("update alert_channel set next_try_at = now(), claimed_until = null");
  const waiting = async () =>
    (await database.pool.query("select told ->> 0 as told, tries, failure from alert_channel")).rows;

  it("an alert and its end are sent once each, however many coordinators note and send", async () => {
    await createAlertStore(database.pool).setChannels([hook()]);
    const coordinators = Array.from({ length: 10 }, () => ports());

    await Promise.all(coordinators.map(async (one) => await noteAlerts(one, atOnce)));
    await Promise.all(coordinators.map(async (one) => await sendMessages(one, never)));
    const noted = await notedAlerts(database.pool);
    await noteAlerts(ports({ facts: async () => facts(false) }), atOnce);
    await sendMessages(ports(), never);

    expect(received.map(({ body }) => body.text)).toEqual([
      `Warning: ${offline.words} (crawler-offline)`,
      `Ended: crawler-offline. ${offline.words}`,
    ]);
    expect(noted).toMatchObject([{ name: "crawler-offline", toldAt: expect.any(Date) }]);
    expect(await channelStates(database.pool)).toMatchObject([
      { failures: 0, waiting: 0, place: new URL(url).host },
    ]);
  });

  it("a claim is not repeated by a coordinator whose transaction began before it", async () => {
    await noteAlerts(ports(), atOnce);
    const late = await database.pool.connect();

    await late.query("begin");
    await late.query("select pg_sleep(0.01)");
    const first = await createAlertStore(database.pool).claim(["pager"]);
    const second = await createAlertStore(late as unknown as Pool).claim(["pager"]);
    await late.query("commit");
    late.release();

    expect(first).toHaveLength(1);
    expect(second).toEqual([]);
  });

  it("a message whose outcome was not stored is sent again with the same id, and no other", async () => {
    await noteAlerts(ports(), atOnce);
    const [claimed] = await createAlertStore(database.pool).claim(["pager"]);
    await hook().send(claimed!, never);

    await noteAlerts(ports(), atOnce);
    await sendMessages(ports(), never);
    const beforeItsTime = received.length;
    await due();
    await sendMessages(ports(), never);

    expect(beforeItsTime).toBe(1);
    expect(received.map(({ id }) => id)).toEqual([claimed!.id, claimed!.id]);
    expect(await waiting()).toEqual([{ told: null, tries: 2, failure: "" }]);
  });

  it("an alert noted during an attempt is sent with the next, alone or after what failed", async () => {
    const store = createAlertStore(database.pool);
    const texts = async (outcome: Delivery) => {
      await noteAlerts(ports(), atOnce);
      const [claimed] = await store.claim(["pager"]);
      await noteAlerts(ports({ facts: async () => facts(false) }), atOnce);
      const during = await store.claim(["pager"]);
      await store.settle(claimed!, outcome, 0.5);
      await due();
      const [next] = await store.claim(["pager"]);
      await store.settle(next!, { type: "delivered" }, 0.5);
      return [during.length, ...next!.told.map(({ state }) => state), (await waiting())[0].told];
    };

    expect(await texts({ type: "delivered" })).toEqual([0, "ended", null]);
    expect(await texts({ type: "failed", words: "status 500" })).toEqual([0, "began", "ended", null]);
  });

  it("an attempt aborted by a stop does not count", async () => {
    await noteAlerts(ports(), atOnce);
    const stopping = new AbortController();
    answer = () => stopping.abort();
    await sendMessages(ports(), stopping.signal);

    expect(await waiting()).toMatchObject([{ told: expect.stringContaining("berlin"), tries: 0 }]);
  });

  it("a failing message is tried seven times, raises an alert, and goes with a removed channel", async () => {
    answer = (_request, response) => response.writeHead(500).end();
    const store = createAlertStore(database.pool);
    await store.setChannels([hook()]);
    const outcomes: string[] = [];
    await noteAlerts(ports(), atOnce);
    for (let turn = 0; turn < 9; turn += 1) {
      await due();
      await sendMessages(ports({ onAttempt: (_channel, outcome) => outcomes.push(outcome) }), never);
    }
    const channels = await channelStates(database.pool);

    expect(outcomes).toEqual([...Array(6).fill("failed"), "given-up"]);
    expect(await waiting()).toEqual([{ told: null, tries: 7, failure: "status 500" }]);
    expect(alertsOf({ ...facts(false), channels })).toMatchObject([
      { name: "alert-delivery-failing", targets: ["pager (7 times: status 500)"] },
    ]);
    await noteAlerts(ports({ facts: async () => facts(false) }), atOnce);
    await store.setChannels([]);
    expect(await waiting()).toEqual([]);
  });

  it("a silent database is reported without it, by the last leader alone, and its end from the database", async () => {
    const since = { words: "the database does not answer within 1 s", sinceMs: nowMs - 60_000 };
    const silent = alertsOf({ ...facts(false), ...withOwn({ silent: since }) });
    let found = silent;
    let ms = 0;
    let leads = true;
    const store = createAlertStore(database.pool);
    const own = new OwnTelling({
      ...{ store, channels: [hook()], newId: () => `msg_${randomUUID()}`, chance: () => 0.5, now },
      ...{ alerts: () => found, leads: () => leads, nowMs: () => ms },
    });
    const other = new OwnTelling({
      ...{ store, channels: [hook()], newId: () => "msg_other", chance: () => 0.5, now },
      ...{ alerts: () => found, leads: () => false, nowMs: () => ms },
    });

    found = [];
    await own.turn(1000, never);
    found = silent;
    leads = false;
    answer = (_request, response) => response.writeHead(received.length === 1 ? 503 : 204).end();
    for (ms = 1000; ms <= 30_000; ms += 5000)
      await Promise.all([own.turn(1000, never), other.turn(1000, never)]);
    found = [];
    await own.turn(1000, never);
    await noteAlerts(ports({ facts: async () => facts(false) }), atOnce);
    await sendMessages(ports(), never);

    expect(received.map(({ body }) => body.text.slice(0, 30))).toEqual([
      "Critical: The database does no",
      "Critical: The database does no",
      "Ended: database-does-not-answe",
    ]);
    expect(received[0]!.id).toBe(received[1]!.id);
  });
});
