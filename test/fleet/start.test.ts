/** The fleet over HTTP: who sees what of it, what each may change, and what is written down of that. */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { fleetPart } from "#coordinator/tell/fleet/start";
import { createChartReads } from "#coordinator/tell/overview/chart-reads";
import { asCrawlerId } from "#core/ids";
import type { Database } from "#db/server-database";
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

describe("what is shown", () => {
  it("the list says who is away since when, why, and what there is to do", async () => {
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

  it("the list is sorted and filtered, and is a table for spreadsheets", async () => {
    const sorted = (await api("/api/fleet?sort=subnets")).json();
    const greek = (await api("/api/fleet?country=GR&q=ath")).json();
    const wrong = await api("/api/fleet?sort=weight");
    const csv = await get("/fleet?format=csv");

    expect(sorted.crawlers.map(({ name }: { name: string }) => name)).toEqual(["berlin", "athens", "tokyo"]);
    expect(greek.crawlers.map(({ name }: { name: string }) => name)).toEqual(["athens"]);
    expect([wrong.statusCode, wrong.json().error.message]).toEqual([400, expect.stringContaining("subnets")]);
    expect(csv.body.split("\r\n")[2]).toMatch(/^berlin,Berlin,DE,offline,2026-03-01T11:00:00.000Z,it was/);
  });

  it("staff see how crawlers stand, and neither keys, addresses nor who reaches the partner", async () => {
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

  it("a partner sees its own crawler with its past, without the names of those that are in no list", async () => {
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

describe("what is changed", () => {
  it("a partner drains its own crawler and takes it back; it may nothing else", async () => {
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

  it("a partner does not take back what an operator drained", async () => {
    await form("/crawlers/athens/drain");
    const refused = await form("/crawlers/athens/resume", {}, partner);
    const page = (await get("/crawlers/athens", partner.headers)).body;
    await form("/crawlers/athens/resume");

    expect(refused.statusCode).toBe(409);
    expect(refused.body).toContain("ask an operator");
    expect(page).toContain("An operator resumes it");
  });

  it("an invitation by the form is shown once, with the line, and withdrawn", async () => {
    const both = { "scopes-probe": "yes", "scopes-crawl": "yes" };
    const fields = {
      ...both,
      ...{ name: "oslo", pagesPerDay: "5000", bytesPerDay: "2.5 GB", expiresHours: "24" },
    };
    const made = await form("/fleet/invite", fields);
    const again = await form("/fleet/invite", { ...fields, name: "athens" });
    const wrong = await form("/fleet/invite", { ...fields, name: "No Name" });
    const listed = (await api("/api/fleet/invitations")).json().invitations[0];
    const withdrawn = await form(`/fleet/invitations/${listed.invitationId}/revoke`);
    const twice = await post(`/api/fleet/invitations/${listed.invitationId}/revoke`);

    expect([made.statusCode, made.headers["cache-control"]]).toEqual([201, "no-store"]);
    expect(made.body).toContain("shown only once");
    expect(made.body).toContain("node nearcrawl-crawler.mjs join -");
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

  it("a budget is granted by form and by API, and written down with what was before", async () => {
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

  it("domain sets are given by form and by API, shown with the pace, and refused with the reason", async () => {
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

  it("before a crawler is shut out its page says what will happen, and nothing happens by looking", async () => {
    const page = await get("/crawlers/athens/kill");

    expect(page.body).toMatch(/Its <strong>1 subnet<\/strong> goes to others now, without waiting for it:/);
    expect(page.body).toMatch(/Drain: hand over first.*Its <strong>1 subnet<\/strong> goes to others:/s);
    expect(page.body).toContain("1 subnet: to the nearest crawler, after new measurements");
    expect(page.body).toContain(
      '2 subnets: to <a href="/crawlers/berlin">berlin</a>, the next nearest with capacity, as measured',
    );
    expect((await crawler("athens", "revoked_at")).revoked_at).toBeNull();
  });

  it("who is shut out by the page is named by typing, and nothing is done before", async () => {
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

  it("a partner's link signs in to its crawler alone", async () => {
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

  it("who is not there cannot be changed, and a crawler moves only where both can take part", async () => {
    const verbs = ["drain", "resume", "revoke", "kill", "believe"];

    const answers = await Promise.all(verbs.map((verb) => post(`/api/fleet/crawlers/nobody/${verb}`)));

    expect(answers.map(({ statusCode }) => statusCode)).toEqual(verbs.map(() => 404));
    expect((await get("/crawlers/%00")).statusCode).toBe(404);
    const move = await post("/api/fleet/crawlers/athens/move", { to: "berlin" });
    expect(move.json().error.message).toBe("athens was not moved: both must have joined with an invitation.");
  });
});
