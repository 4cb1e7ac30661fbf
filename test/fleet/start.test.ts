/** The fleet over HTTP: who sees what, who may change what, and what the audit log records. */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { fleetPart } from "#coordinator/tell/fleet/start";
import { createChartReads } from "#coordinator/tell/overview/chart-reads";
import { asCrawlerId } from "#core/ids";
import type { Database } from "#db/server-database";
import { parseInvitation } from "#protocol/invitation";
import { testDatabase } from "../support/database.ts";
import { publishedRelease } from "../support/releases.ts";
import { seedPage, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { bearer, formBy, type SignedIn, signIn } from "../support/signed-in.ts";
import { mainOf, webServer } from "../support/web-server.ts";

let database: Database;
let app: FastifyInstance;
let operator: SignedIn;
let partner: SignedIn;
let program: { readonly authorization: string };

const heirs = [
  { crawler: "berlin", subnets: 2, measured: true },
  { crawler: null, subnets: 1, measured: false },
];

beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  const url = "https://www.example.org/harbour";
  await seedUrl(database.pool, { url });
  await seedPage(database.pool, { url, title: "Harbour", text: "Ferries" });
  const place = { webUrl: "https://search.example", certificatePin: "A".repeat(43) };
  await stateCoordinatorPlace(database.pool, place, worldNow);
  const seen = { kind: "link-flood", words: "too many new hosts", remoteAddress: "192.0.2.7" };
  await createIncidentStore(database.pool).record({ ...seen, crawlerId: asCrawlerId(1), at: worldNow });
  const secretive =
    "update crawler set unlisted = true, partner_contact = 'ops@tokyo.example' where name = 'tokyo'";
  await database.pool.query(secretive);
  await publishedRelease(database.pool, { version: "1.4.0", stage: "all" });
  app = webServer(database, {
    parts: [
      fleetPart(
        { pool: database.pool, past: createChartReads(database.pool), succession: async () => heirs },
        () => worldNow,
      ),
    ],
  });
  operator = await signIn(database, "operator");
  partner = await signIn(database, "partner");
  program = await bearer(database, ["read", "fleet-read", "fleet-write"]);
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

const get = async (url: string, headers: Record<string, string> = operator.headers) =>
  await app.inject({ url, headers });
const api = async (url: string) => await get(url, program);
const post = async (url: string, payload: object = {}) =>
  await app.inject({ method: "POST", url, headers: program, payload });
const form = async (url: string, fields: Record<string, string> = {}, by: SignedIn = operator) =>
  await app.inject(formBy(by, url, fields));
const changes = async () =>
  (await database.pool.query("select action, actor, via, target from audit_entry order by entry_id desc"))
    .rows;
const crawler = async (name: string, columns: string) =>
  (await database.pool.query(`select ${columns} from crawler where name = $1`, [name])).rows[0];

describe("reading", () => {
  it("the list says who is offline, since when, why, and what to do", async () => {
    const fleet = (await api("/api/fleet?state=offline")).json();

    expect(fleet).toMatchObject({ found: 1, totals: { crawlers: 3, connected: 2, offline: 1 } });
    expect(fleet.crawlers[0]).toMatchObject({
      name: "berlin",
      standing: {
        state: "offline",
        since: "2026-03-01T11:00:00.000Z",
        why: "it was stopped by its host",
        advice: "It is back when its host starts it again.",
      },
    });
  });

  it("the list can be sorted, filtered and exported as CSV", async () => {
    const sorted = (await api("/api/fleet?sort=subnets")).json();
    const greek = (await api("/api/fleet?country=GR&q=ath")).json();
    const wrong = await api("/api/fleet?sort=weight");
    const csv = await get("/fleet?format=csv");

    expect(sorted.crawlers.map(({ name }: { name: string }) => name)).toEqual(["berlin", "athens", "tokyo"]);
    expect(greek.crawlers.map(({ name }: { name: string }) => name)).toEqual(["athens"]);
    expect([wrong.statusCode, wrong.json().error.message]).toEqual([400, expect.stringContaining("subnets")]);
    expect(csv.body.split("\r\n")[2]).toMatch(/^berlin,Berlin,DE,offline,2026-03-01T11:00:00.000Z,it was/);
  });

  it("staff see the state of crawlers, but no keys, addresses or contacts", async () => {
    const staff = await signIn(database, "staff");
    const accept = { ...staff.headers, accept: "application/json" };

    const fleet = (await get("/fleet", accept)).json();
    const one = (await get("/crawlers/athens", accept)).json();
    const page = (await get("/crawlers/tokyo", staff.headers)).body;

    expect(fleet.crawlers[0]).not.toHaveProperty("identity");
    expect(one).toMatchObject({ inside: null, operation: { standing: { state: "online" } } });
    expect(one.operation).not.toHaveProperty("identity");
    expect(page).not.toContain("ops@tokyo.example");
    expect(mainOf(page)).not.toContain('<form method="post"');
    expect((await get("/fleet/incidents", staff.headers)).statusCode).toBe(403);
  });

  it("a partner sees its own crawler with its past, without the names of unlisted ones", async () => {
    const accept = { ...partner.headers, accept: "application/json" };

    const own = (await get("/crawlers/athens", accept)).json();
    const others = await Promise.all(
      ["/crawlers/berlin", "/fleet", "/fleet/incidents", "/crawlers/athens/kill", "/fleet/invite"].map(
        async (url) => (await get(url, accept)).statusCode,
      ),
    );

    expect(own.peers.map(({ name }: { name: string }) => name)).toEqual(["berlin", "another crawler"]);
    expect(own.inside).toMatchObject({ incidents: [{ kind: "link-flood" }] });
    expect(JSON.stringify(own)).not.toContain("tokyo");
    expect(others).toEqual([403, 403, 403, 403, 403]);
  });
});

describe("changing", () => {
  it("a partner may drain and resume its own crawler, and nothing else", async () => {
    const drained = await form("/crawlers/athens/drain", {}, partner);
    const state = await crawler("athens", "state, drain_asked_by");
    const resumed = await form("/crawlers/athens/resume", {}, partner);
    const refused = [
      await form("/crawlers/berlin/drain", {}, partner),
      await form("/crawlers/athens/kill", {}, partner),
      await form("/crawlers/athens/budget", { pagesPerDay: "1" }, partner),
      await form("/crawlers/athens/rotate", {}, partner),
      await form("/crawlers/athens/sign-in-link", { person: "eve" }, partner),
    ];

    expect([drained.statusCode, drained.headers.location]).toEqual([303, "/crawlers/athens"]);
    expect(state).toEqual({ state: "draining", drain_asked_by: "partner" });
    expect(resumed.statusCode).toBe(303);
    expect(refused.map(({ statusCode }) => statusCode)).toEqual([403, 403, 403, 403, 403]);
    expect((await changes()).slice(0, 2)).toEqual([
      { action: "crawler-resumed", actor: "chris", via: "page", target: "athens" },
      { action: "crawler-drained", actor: "chris", via: "page", target: "athens" },
    ]);
  });

  it("a partner cannot resume what an operator drained", async () => {
    await form("/crawlers/athens/drain");
    const refused = await form("/crawlers/athens/resume", {}, partner);
    const page = (await get("/crawlers/athens", partner.headers)).body;
    await form("/crawlers/athens/resume");

    expect(refused.statusCode).toBe(409);
    expect(refused.body).toContain("ask an operator");
    expect(page).toContain("An operator resumes it");
  });

  it("an invitation made by form is shown once with its command, listed without its secret, and withdrawn", async () => {
    const both = { "scopes-probe": "yes", "scopes-crawl": "yes" };
    const fields = {
      ...both,
      ...{ name: "oslo", pagesPerDay: "5000", bytesPerDay: "2.5 GB", expiresHours: "24" },
    };
    const made = await form("/fleet/invite", fields);
    const again = await form("/fleet/invite", { ...fields, name: "athens" });
    const wrong = await form("/fleet/invite", { ...fields, name: "No Name" });
    const list = await api("/api/fleet/invitations");
    const listed = list.json().invitations[0];
    const withdrawn = await form(`/fleet/invitations/${listed.invitationId}/revoke`);
    const twice = await post(`/api/fleet/invitations/${listed.invitationId}/revoke`);

    expect([made.statusCode, made.headers["cache-control"]]).toEqual([201, "no-store"]);
    expect(made.body).toContain("shown only once");
    expect(made.body).toContain("node nearcrawl-crawler.mjs join -");
    expect(list.body).not.toContain(parseInvitation(/id="token">([^<]+)</.exec(made.body)![1]!).secret);
    expect([again.statusCode, again.body.includes('value="5000"')]).toEqual([409, true]);
    expect([wrong.statusCode, wrong.body.includes('value="No Name"')]).toEqual([400, true]);
    expect(listed).toMatchObject({
      name: "oslo",
      pagesPerDay: 5000,
      bytesPerDay: 2_500_000_000,
      state: "open",
    });
    expect([withdrawn.statusCode, twice.statusCode]).toEqual([303, 404]);
    expect((await changes())[1]).toMatchObject({ action: "crawler-invited", actor: "anna", target: "oslo" });
  });

  it("a budget is granted by form and by API, and the audit log has what was before", async () => {
    const byForm = await form("/crawlers/tokyo/budget", { pagesPerDay: "700", bytesPerDay: "" });
    const byApi = await post("/api/fleet/crawlers/tokyo/budget", { bytesPerDay: 5_000_000 });
    const empty = await post("/api/fleet/crawlers/tokyo/budget", {});
    const words = await form("/crawlers/tokyo/budget", { pagesPerDay: "many" });

    const statuses = [byForm, byApi, empty, words].map(({ statusCode }) => statusCode);
    expect(statuses).toEqual([303, 200, 400, 400]);
    expect(byApi.json()).toMatchObject({
      granted: { pagesPerDay: 700, bytesPerDay: 5_000_000 },
      inForce: { pagesPerDay: 700, bytesPerDay: 5_000_000 },
    });
    const { rows } = await database.pool.query(
      "select before, after from audit_entry where action = 'crawler-budget-granted' order by entry_id desc limit 1",
    );
    expect(rows[0]).toEqual({
      before: { pagesPerDay: 700, bytesPerDay: null },
      after: { pagesPerDay: 700, bytesPerDay: 5_000_000 },
    });
  });

  it("domain sets are given by form and by API, shown with the pace, or refused with the reason", async () => {
    const byForm = await form("/crawlers/tokyo/domain-sets", { sets: ".jp\r\n\r\n lang:ja " });
    await database.pool.query(
      "update crawler set pace = 'slow-down', pace_due_slices = 2, pace_since = '2026-02-27T02:00:00Z' where name = 'tokyo'",
    );
    const page = (await get("/crawlers/tokyo")).body;
    const byApi = await post("/api/fleet/crawlers/tokyo/domain-sets", { sets: [".jp", "not .com"] });
    const wrong = await post("/api/fleet/crawlers/tokyo/domain-sets", { sets: [".jp not .jp"] });
    const nobody = await post("/api/fleet/crawlers/nobody/domain-sets", { sets: [".jp"] });
    const cleared = await form("/crawlers/tokyo/domain-sets", { sets: "" });

    expect([byForm, byApi, wrong, nobody, cleared].map(({ statusCode }) => statusCode)).toEqual([
      ...[303, 200, 422, 404, 303],
    ]);
    expect(page).toContain(".jp or lang:ja");
    expect(page).toContain("throttled: little work due");
    expect(byApi.json()).toMatchObject({ operator: [".jp", "not .com"], before: [".jp", "lang:ja"] });
    expect(wrong.body).toContain("the domain set has both .jp and not .jp");
    expect((await changes())[0]).toMatchObject({ action: "crawler-domain-sets-given", target: "tokyo" });
  });

  it("the page before a removal says what will happen, and changes nothing", async () => {
    const page = await get("/crawlers/athens/kill");

    expect(page.body).toMatch(/Its <strong>1 subnet<\/strong> goes to others now, without waiting for it:/);
    expect(page.body).toMatch(/Drain: hand over first.*Its <strong>1 subnet<\/strong> goes to others:/s);
    expect(page.body).toContain("1 subnet: to the nearest crawler, after new measurements");
    expect(page.body).toContain(
      '2 subnets: to <a href="/crawlers/berlin">berlin</a>, the next nearest with capacity, as measured',
    );
    expect((await crawler("athens", "revoked_at")).revoked_at).toBeNull();
  });

  it("a removal by the page takes the typed name", async () => {
    await createCrawlerStore(database.pool).register({ name: "doomed", keyHash: "key of doomed" });
    const page = await get("/crawlers/doomed/kill");

    const wrong = await form("/crawlers/doomed/kill", { confirmation: "athens" });
    const empty = await form("/crawlers/doomed/revoke", {});
    const before = (await crawler("doomed", "revoked_at")).revoked_at;
    const right = await form("/crawlers/doomed/kill", { confirmation: " doomed " });

    expect(page.body).toContain("Type <code>doomed</code> to confirm");
    expect([wrong.statusCode, empty.statusCode, right.statusCode]).toEqual([422, 422, 303]);
    expect(wrong.body).toContain("Nothing was done");
    expect(before).toBeNull();
    expect((await crawler("doomed", "revoked_at")).revoked_at).not.toBeNull();
  });

  it("a partner's link signs in to its crawler only", async () => {
    const made = await form("/crawlers/athens/sign-in-link", { person: "dora", minutes: "60" });
    const bad = await form("/crawlers/athens/sign-in-link", { person: "no body", minutes: "60" });
    const lesser = await app.inject({
      method: "POST",
      url: "/api/fleet/crawlers/athens/sign-in-link",
      headers: await bearer(database, ["access-write"]),
      payload: { person: "eve" },
    });
    const { rows } = await database.pool.query("select role, crawlers from sign_in_link where name = 'dora'");

    expect([made.statusCode, bad.statusCode, lesser.statusCode]).toEqual([201, 400, 403]);
    expect(made.body).toMatch(/https:\/\/search\.example\/sign-in\/ncl_/);
    expect(rows).toEqual([{ role: "partner", crawlers: ["athens"] }]);
    expect(JSON.stringify(await changes())).not.toContain("ncl_");
  });

  it("opt-outs and complaints are added, confirmed, lifted and closed", async () => {
    const optOut = (await post("/api/fleet/opt-outs", { target: "old.example.org" })).json();
    const lifted = await form(`/fleet/opt-outs/${optOut.optOutId}/lift`, { words: "by mistake" });
    const added = { target: "www.example.org", from: "abuse@isp.example", text: "too <b>fast</b>" };
    const complaint = (await post("/api/fleet/complaints", added)).json();
    const page = (await get("/fleet/complaints")).body;
    const closed = await form(`/fleet/complaints/${complaint.complaintId}/close`, { words: "answered" });
    const wrong = await post("/api/fleet/opt-outs", { target: "no such/thing" });
    const preview = await get("/fleet/opt-outs/preview?target=co.uk", {
      ...operator.headers,
      accept: "text/html",
    });
    const [mistyped, empty] = await Promise.all(
      ["no such/thing", ""].map((target) =>
        get(`/fleet/opt-outs/preview?target=${encodeURIComponent(target)}`, {
          ...operator.headers,
          accept: "text/html",
        }),
      ),
    );
    const unsaid = await form("/fleet/opt-outs", { target: "co.uk", scope: "", words: "", removePages: "" });
    const refused = await post("/api/fleet/opt-outs", { target: "co.uk" });
    await form("/fleet/opt-outs", { target: "co.uk", scope: "", words: "", removePages: "0" });

    const statuses = [lifted, closed, wrong].map(({ statusCode }) => statusCode);
    expect([optOut.state, ...statuses]).toEqual(["confirmed", 303, 303, 400]);
    expect(page).toContain("too &lt;b&gt;fast&lt;/b&gt;");
    expect([mistyped!.statusCode, mistyped!.body]).toEqual([400, expect.stringContaining('role="alert"')]);
    expect(mistyped!.body).toContain('value="no such/thing"');
    expect(empty!.body).toContain('name="target"');
    expect(preview.body).toContain("co.uk is a public suffix: many people");
    for (const body of [preview.body, unsaid.body]) expect(body).toContain('name="removePages"');
    expect([unsaid.statusCode, refused.statusCode]).toEqual([422, 422]);
    expect(refused.json().error.message).toContain('type how many pages go, 0 (API: "removePages": 0)');
    const done = (await changes()).slice(0, 5).map(({ action }) => action);
    expect(done).toEqual(["opted-out", "complaint-closed", "complaint-added", "opt-out-lifted", "opted-out"]);
  });

  it("a release is offered and held where no signature is needed", async () => {
    const nobody = await post("/api/fleet/versions/1.4.0/stage", { to: "one=athens" });
    const all = await form("/fleet/versions/1.4.0/stage", { to: "all" });
    const held = await post("/api/fleet/versions/1.4.0/hold", { reason: "too slow" });

    expect([nobody.statusCode, all.statusCode, held.statusCode]).toEqual([409, 303, 200]);
    const [release] = (await api("/api/fleet/versions")).json().releases;
    expect(release).toMatchObject({ version: "1.4.0", stage: "none", stageWords: "too slow" });
  });

  it("unknown crawlers cannot be changed, and a crawler moves only when both can take part", async () => {
    const verbs = ["drain", "resume", "revoke", "kill", "believe"];

    const answers = await Promise.all(verbs.map((verb) => post(`/api/fleet/crawlers/nobody/${verb}`)));

    expect(answers.map(({ statusCode }) => statusCode)).toEqual(verbs.map(() => 404));
    expect((await get("/crawlers/%00")).statusCode).toBe(404);
    const move = await post("/api/fleet/crawlers/athens/move", { to: "berlin" });
    expect(move.json().error.message).toBe("athens was not moved: both must have joined with an invitation.");
  });

  it("an invitation made by API pins the coordinator's key in its token and in its command", async () => {
    const made = await post("/api/fleet/invitations", { name: "lisbon", pagesPerDay: 500 });
    const { token, commands } = made.json();

    expect([made.statusCode, made.headers["cache-control"]]).toEqual([201, "no-store"]);
    expect(parseInvitation(token)).toMatchObject({
      ...{ name: "lisbon", coordinatorUrl: "wss://search.example/crawler", certificatePin: "A".repeat(43) },
    });
    expect(commands.download).toMatch(
      /^curl .*--pinnedpubkey 'sha256\/\/A{42}.=' .*https:\/\/search\.example\/releases\/dock\.mjs\?invitation=\d+' && node /,
    );
  });

  it("an invitation is refused for unknown fields, bad values, and a crawler that cannot be renewed", async () => {
    const asked = [
      { name: "lisbon", admin: true },
      { name: "../x", expiresHours: 1e9 },
      { name: "madrid", renews: true },
    ];
    const answers = await Promise.all(asked.map((one) => post("/api/fleet/invitations", one)));

    expect(answers.map(({ statusCode }) => statusCode)).toEqual([400, 400, 404]);
    expect(answers[1]!.json().error.message).toMatch(/name: .*expiresHours: /);
  });

  it("no invitation is made without a release key to pin, or an address that crawlers can reach", async () => {
    const { pool } = database;
    const invite = async () => await post("/api/fleet/invitations", { name: "quito" });
    const { rows: keys } = await pool.query("delete from release_key returning *");
    const unpinned = await invite();
    const { rowCount: made } = await pool.query("select from invitation where name = 'quito'");
    for (const key of keys)
      await pool.query("insert into release_key select * from jsonb_populate_record(null::release_key, $1)", [
        key,
      ]);
    await pool.query("update coordinator_place set web_url = 'http://192.0.2.1:7411'");
    const unreachable = await invite();
    await pool.query("update coordinator_place set web_url = 'https://search.example'");
    const invited = await invite();

    expect([unpinned.statusCode, made, unreachable.statusCode, invited.statusCode]).toEqual([
      409, 0, 409, 201,
    ]);
    expect(unpinned.json().error.message).toMatch(/no release key.*nearcrawl release trust/);
    expect(unreachable.json().error.message).toContain("publicUrl");
  });

  it("keys are revoked and asked for, of crawlers that have or make them", async () => {
    for (const name of ["out", "gone", "rotated", "older"]) {
      await createCrawlerStore(database.pool).register({ name, keyHash: `key of ${name}` });
      await database.pool.query("update crawler set public_key = $1 where name = $1", [name]);
    }
    await database.pool.query("update crawler set signing_keys_since = now() where name = 'rotated'");
    const deeds = [
      ["out/revoke", 200],
      ["gone/kill", 200],
      ["rotated/rotate", 202],
      ["rotated/signing-key", 202],
      ["out/rotate", 409],
      ["older/signing-key", 409],
    ] as const;
    const answers = [];
    for (const [deed] of deeds)
      answers.push(
        await post(`/api/fleet/crawlers/${deed}`, deed === "rotated/rotate" ? { graceHours: 1 } : {}),
      );
    const { rows } = await database.pool.query(
      `select name, revoked_at is not null as out, draining_since is not null as leaves, rotation_grace_hours as hours,
         signing_key_asked_at is not null as signs
       from crawler where name in ('out', 'gone', 'rotated') order by name`,
    );

    expect(answers.map(({ statusCode }) => statusCode)).toEqual(deeds.map(([, status]) => status));
    expect(answers[1]!.json()).toEqual({ name: "gone", revoked: true, returnedLeases: 0 });
    expect(answers[3]!.json()).toEqual({ name: "rotated", online: false });
    expect(answers[5]!.json().error.message).toContain("older ones sign with their identities");
    expect(rows).toEqual([
      { name: "gone", out: true, leaves: true, hours: null, signs: false },
      { name: "out", out: true, leaves: false, hours: null, signs: false },
      { name: "rotated", out: false, leaves: false, hours: 1, signs: true },
    ]);
  });

  it("no other origin may call the API, and GET changes nothing", async () => {
    const url = "/api/fleet/crawlers/athens/revoke";
    const origin = { origin: "https://evil.example", "access-control-request-method": "POST" };
    const preflight = await app.inject({ method: "OPTIONS", url, headers: origin });

    expect([preflight.statusCode, (await api(url)).statusCode]).toEqual([405, 404]);
    expect(Object.keys(preflight.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});
