/** The page of one crawler: its state and what to do, its work against its limits, its subnets, and its past. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import {
  bytesText,
  howMany,
  instantWords,
  leastSamples,
  msText,
  percentText,
  sampledShare,
} from "#core/format";
import { asCrawlerId } from "#core/ids";
import { timeRange } from "#core/time-range";
import {
  actions,
  column,
  empty,
  facts,
  folded,
  form,
  group,
  history,
  lead,
  list,
  note,
  picture,
  plain,
  present,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import { type Document, type Inline, type Node, operationsOf } from "../../ask/operation.ts";
import { partnerAccessOperations } from "../../run/access/access-ask.ts";
import { record } from "../../web/api-operation.ts";
import { type ChartHistory, rangeParameters } from "../../web/chart-history.ts";
import { askFor, crawlerFor, crawlerOr, crawlerPath, onlyOperators, small } from "../../web/components.ts";
import { ago, countText, instant, msOrDash, shippedShare, stateBadge } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import type { PageViewer } from "../../web/page-frame.ts";
import { crawlerFacts, subnetList } from "../who/who-ask.ts";
import { crawlerDetail, type Operation } from "./crawler-api.ts";
import {
  believeCrawler,
  crawlerNamed,
  drainCrawler,
  grantBudget,
  killCrawler,
  moveCrawler,
  noCrawler,
  noCrawlerWords,
  renewSigningKey,
  resumeCrawler,
  revokeCrawler,
  rotateKey,
  setDomainSets,
} from "./crawler-deeds-ask.ts";
import { absenceSection, insideNodes, pageOfLog } from "./crawler-past-ask.ts";
import { type CrawlerView, crawlerView } from "./crawler-view.ts";
import { type Blame, blameNames, fleetEntrySchema, isTrusted } from "./fleet-api.ts";
import type { FleetPorts } from "./fleet-store.ts";
import { inviteBounds } from "./invitations-ask.ts";

const { get } = operationsOf<FleetPorts>();

const crawler = get({
  ...{ path: "/api/crawlers/{name}", needs: "read", crawlerIn: "name" },
  summary:
    "One crawler in full: state and why, limits, subnets, failures, absences; for operators and its partner, its past",
  description: "Scope read; partners see their own. `inside` needs fleet-read, or is the partner's own.",
  input: z.object({ name: crawlerNamed, page: pageOfLog, ...rangeParameters }),
  output: crawlerDetail,
  faults: { 404: noCrawlerWords },
  command: { name: "fleet show" },
  run: async ({ input, ports, actor, now }) => {
    const view = await crawlerView({ name: input.name, logPage: input.page ?? 1, actor, now }, ports);
    if (view === null) throw noCrawler(input.name);
    return { ...view, history: await ports.past.crawlerCharts(view.crawler, timeRange(input, now)) };
  },
  view: crawlerDocument,
});

interface Shown {
  readonly viewer: PageViewer;
  readonly now: Date;
}

function crawlerDocument(view: CrawlerView & { readonly history: ChartHistory }, shown: Shown): Document {
  const { crawler: of, operation, inside, subnets } = view;
  const { viewer, now } = shown;
  return {
    title: of.name,
    beside: beside(view, now),
    nodes: present([
      whyNode(of.name, operation),
      ...deedNodes(view, viewer),
      tiles(
        [
          today("Pages today (UTC)", operation.pagesToday, operation.pagesPerDay, countText),
          today("Bytes today", operation.bytesToday, operation.bytesPerDay, bytesText),
          ["Subnets", countText(of.subnets), subnetsLink(view, viewer)],
          ["Mean RTT to them", msOrDash(of.meanRttMs)],
          [
            "Pages in the index",
            countText(of.pages),
            of.bodyBytes > 0 ? `${shippedShare(of)} of their bytes were shipped` : "none yet",
          ],
          ["Open leases", countText(of.openLeases)],
          ["Recent probes", countText(operation.activity.probes.asked), answeredWords(operation)],
          ["Failed in 24 h", ...failedShare(operation)],
        ],
        "by-four",
      ),
      crawlerFacts(of, (address) => askFor(viewer, address)),
      limitFacts(operation),
      workFacts(operation),
      history(view.history),
      operation.failures && failureSection(of.name, operation.failures, viewer),
      absenceSection(operation.absences),
      section(
        "Its subnets, latest first",
        subnets.subnets.length > 0
          ? subnetNodes(view, viewer)
          : [empty("None yet.", "It gets the subnets that it turns out to be nearest to.")],
      ),
      operation.activity.fetches.length > 0 && fetchSection(view, viewer),
      ...(inside === null ? [] : insideNodes(of.name, inside, shown)),
      view.peers.length > 0 && section("RTT to other crawlers", [peerTable(view, viewer)]),
    ]),
  };
}

/** Shows its state and how to reach its partner. */
function beside({ crawler: of, operation: { standing }, inside }: CrawlerView, now: Date): Html {
  const { state, since } = standing;
  const badge = stateBadge(state === "never" ? "never connected" : state);
  const at = now.toISOString();
  const when = since && small(html`${state === "online" ? "connected" : "since"} ${ago(since, at)}`);
  return html`${badge}${when}${askPartner(of.name, inside?.identity.contact ?? null)}`;
}

function askPartner(name: string, contact: string | null): Html {
  if (contact === null) return nothing;
  if (!/^[^\s@<>"?&%]+@[^\s@<>"?&%]+$/.test(contact)) return small(`Its partner: ${contact}`);
  const to = `mailto:${contact}?subject=${encodeURIComponent(`Your crawler ${name}`)}`;
  return html`<a class="button quiet slim" href="${to}">Ask its partner</a>`;
}

function whyNode(name: string, { standing: { state, since, why, advice } }: Operation): Node {
  const stands = `${name}: ${state}${since === null ? "" : ` since ${instantWords(since)}`}`;
  if (why === null) return picture(nothing, stands);
  return picture(
    html`<div class="verdict ${state === "online" ? "" : "verdict-away"}"><p><strong>Why:</strong> ${why}.${since && html` ${small(instant(since))}`}</p>
${advice && html`<p><strong>What to do:</strong> ${advice}</p>`}</div>`,
    [`${stands}: ${why}.`, advice ?? ""].join("\n").trim(),
  );
}

function today(name: string, done: number, most: number, text: (value: number) => string) {
  const share = most > 0 ? ` (${percentText(done / most)})` : "";
  return [name, text(done), `of ${text(most)}${share}`] as const;
}

function subnetsLink({ crawler: of }: CrawlerView, { actor }: PageViewer): Html {
  if (of.subnets === 0 || !mayDo(actor, "read")) return nothing;
  return html`<a class="small" href="${pathWith("/explore", { crawler: of.name })}">on the map of the IP space</a>`;
}

function answeredWords({ activity: { probes } }: Operation): string {
  const { asked, measured, rounds } = probes;
  const answered = asked < leastSamples ? countText(measured) : percentText(measured / asked);
  return `in the latest ${howMany(rounds, "round")}${asked === 0 ? "" : `, ${answered} answered`}`;
}

function failedShare({ failures }: Operation): readonly [string, string] {
  if (failures === null) return ["–", "nothing was fetched"];
  const of = `of ${howMany(failures.fetches, "fetch", "fetches")}`;
  if (failures.fetches === 0) return ["–", of];
  const failed = Object.values(failures.failures).reduce((sum, count) => sum + count, 0);
  return [sampledShare(failed, failures.fetches), of];
}

function limitFacts({ granted, partnerAllows, pagesPerDay, bytesPerDay }: Operation): Node {
  const of = ({ pagesPerDay: pages, bytesPerDay: bytes }: Operation["granted"], none: string) =>
    pages === null && bytes === null
      ? none
      : [
          pages === null ? "any number of pages" : howMany(pages, "page"),
          bytes === null ? "any bytes" : bytesText(bytes),
        ].join(", ");
  return facts(
    ["Operators grant a day", of(granted, "as its partner allows")],
    ["Its partner allows a day", of(partnerAllows, "not known yet")],
    ["Effective limit", `${howMany(pagesPerDay, "page")}, ${bytesText(bytesPerDay)}`],
  );
}

const paceWords = {
  "slow-down": "throttled: little work due",
  steady: "steady: a connection for each host that is due, as far as its partner allows",
  "hurry-up": "hurry up: as many connections as its partner allows",
} as const;

function workFacts({ work: { domainSets, pace } }: Operation): Node {
  const { operator, partner } = domainSets;
  const anyOf = (sets: readonly string[]) => html`<span class="mono">${sets.join(" or ")}</span>`;
  return facts(
    ["Domain sets that operators give it", operator.length === 0 ? "every domain" : anyOf(operator)],
    partner.length > 0 && ["Its partner narrows that to", anyOf(partner)],
    [
      "Pace",
      pace === null
        ? "as its partner allows; no pace was sent yet"
        : html`${paceWords[pace.pace]} ${small(html`${howMany(pace.dueSlices, "host slice")} due or in hand; since ${instant(pace.since)}`)}`,
    ],
  );
}

function failureSection(
  name: string,
  { failures, fetches }: NonNullable<Operation["failures"]>,
  { actor }: PageViewer,
): Node {
  const lines = (Object.entries(failures) as [Blame, number][]).filter(([, count]) => count > 0);
  const nameOf = (blame: Blame) =>
    mayDo(actor, "read")
      ? html`<a href="${pathWith("/fleet/failures", { crawler: name, blame })}">${blameNames[blame]}</a>`
      : blameNames[blame];
  return section("Failures in the last 24 hours, by cause", [
    lines.length === 0
      ? empty("Nothing failed.", `All of ${countText(fetches)} fetches were answered.`)
      : list(
          lines.map(
            ([blame, count]) =>
              html`${nameOf(blame)} <strong>${countText(count)}</strong> ${small(sampledShare(count, fetches))}`,
          ),
          "shares",
        ),
  ]);
}

/** Readers who may ask about any subnet get the list with links. */
function subnetNodes({ subnets }: CrawlerView, { actor }: PageViewer): readonly Node[] {
  if (mayDo(actor, "read")) return subnetList(subnets);
  const lines = subnets.subnets.map(
    ({ range, rttMs }) => html`<span class="mono">${range}</span> ${msOrDash(rttMs)}`,
  );
  return [list(lines, "shares")];
}

type Fetch = Operation["activity"]["fetches"][number];

function fetchSection({ operation: { activity }, outcomes }: CrawlerView, viewer: PageViewer): Node {
  return section("Latest fetches", [
    list(
      outcomes.map(({ outcome, fetches }) => html`${outcome} <strong>${countText(fetches)}</strong>`),
      "shares",
    ),
    table<Fetch>({
      ...{ label: "Latest fetches", rows: activity.fetches, empty: ["None.", ""] },
      columns: [
        column("", "When", ({ at }) => at),
        column("", "URL", ({ url }) => (url === null ? "no longer known" : askFor(viewer, url)), {
          kind: "break",
        }),
        column(
          "",
          "Outcome",
          ({ outcome, status, blame }) =>
            html`${outcome} ${status}${blame && small(`the fault of ${blameNames[blame]}`)}`,
        ),
        column("", "Time", ({ totalMs }) => totalMs, { unit: "ms" }),
        column("", "Page", ({ bodyBytes }) => bodyBytes, { unit: "bytes" }),
        column("", "Shipped", ({ shippedBytes }) => shippedBytes, { unit: "bytes" }),
      ],
    }),
  ]);
}

const peerTable = ({ peers }: CrawlerView, viewer: PageViewer) =>
  table<CrawlerView["peers"][number]>({
    ...{ label: "Distances", rows: peers, empty: ["None.", ""] },
    columns: [
      column("", "Crawler", ({ name }) => crawlerFor(viewer, name)),
      column("", "RTT", ({ rttMs }) => msText(rttMs), { kind: "number" }),
      column("", "By", ({ method }) => method),
    ],
  });

function deedNodes(view: CrawlerView, viewer: PageViewer): readonly (Node | false)[] {
  const { crawler: of, operation, inside } = view;
  const { actor } = viewer;
  const path = { name: of.name };
  const isOperator = mayDo(actor, "fleet-write");
  if (!isOperator && !mayDo(actor, "fleet-write", { crawler: of.name, partnersToo: true }))
    return [picture(onlyOperators(actor, "fleet-write", "Steering this crawler"))];
  const { draining } = operation;
  // A partner resumes only what it drained itself.
  const isHeld = draining !== null && actor.role === "partner" && draining.askedBy !== "partner";
  const identity = of.revoked ? undefined : inside?.identity;
  return [
    actions(
      !of.revoked && draining === null && { operation: drainCrawler, path, label: "Drain" },
      !of.revoked &&
        draining !== null &&
        !isHeld && { operation: resumeCrawler, path, label: "Resume", kind: "plain" },
      !isTrusted(operation) && { operation: believeCrawler, path, label: "Trust it again" },
      identity?.publicKey != null && { operation: rotateKey, path, label: "New key" },
      identity?.signingKey != null && { operation: renewSigningKey, path, label: "New signing key" },
      { operation: inviteBounds, values: { renews: of.name }, label: "Reissue credentials" },
      !of.revoked && { operation: shutOutPreview, path, label: "Remove…", kind: "danger" },
    ),
    !of.revoked && isHeld && note("An operator resumes it: ask there."),
    isOperator &&
      folded(
        "Budget, domain sets, move, the partner's sign-in",
        [
          form({
            ...{ operation: grantBudget, path, title: "Budget", label: "Grant", values: operation.granted },
            words: "Takes effect at once. Never more than its partner allows; empty: as its partner allows.",
          }),
          form({
            ...{ operation: setDomainSets, path, title: "Domain sets", label: "Give" },
            values: { sets: operation.work.domainSets.operator },
          }),
          !of.revoked &&
            form({
              ...{ operation: moveCrawler, path, title: "Move to another host", label: "Move" },
              words: html`Invite the new host under any name and start it there; then name it here. ${of.name} continues there with its
subnets and waiting results; the crawler that ran there ceases to exist. Both must be connected.`,
            }),
          form({
            ...{
              operation: partnerAccessOperations.partnerSignInLink,
              path,
              title: "Let its partner sign in",
              label: "Make the link",
            },
            words:
              "A link that works once: whoever opens it sees this crawler, may drain and resume it, and sees nothing of others.",
          }),
        ],
        { kind: "deeds" },
      ),
  ];
}

// The page before a removal: the consequences of each way, and the buttons.

const preview = record("ShutOutPreview", {
  ...fleetEntrySchema.pick({ name: true, state: true, revoked: true, openLeases: true, subnets: true }).shape,
  heirs: z.array(
    z.strictObject({
      crawler: z.string().nullable().describe("Null: measured again."),
      subnets: z.int(),
      measured: z
        .boolean()
        .describe(
          "Whether that crawler has measured them; else nothing can be probed in them, and it stands next to them.",
        ),
    }),
  ),
});

type Preview = z.infer<typeof preview>;

const shutOutPreview = get({
  ...{ path: "/api/fleet/crawlers/{name}/kill", page: "/crawlers/:name/kill", needs: "fleet-write" },
  summary: "What would happen if its access were revoked",
  input: z.object({ name: crawlerNamed }),
  output: preview,
  faults: { 404: noCrawlerWords },
  run: async ({ input: { name }, ports, now }) => {
    const entry = await ports.reads.crawler(name, now);
    if (entry === null) throw noCrawler(name);
    const { state, revoked, openLeases, subnets } = entry;
    const heirs = [...(await ports.succession(asCrawlerId(entry.crawlerId)))];
    return { name, state, revoked, openLeases, subnets, heirs };
  },
  view: (found) => {
    const { name, state, revoked, openLeases, subnets } = found;
    const path = { name };
    const session =
      state === "offline"
        ? "It is not connected now, and cannot connect again."
        : "Its session ends at once.";
    const leases = html`<strong>${howMany(openLeases, "lease")}</strong>`;
    const has = openLeases > 0;
    const card = (title: string, why: Inline, follows: readonly Inline[], deed: Node) =>
      section(title, [plain(why), list(follows), deed], { kind: "choice-card" });
    return {
      title: `Remove ${name}?`,
      nodes: present([
        lead(html`Its pages stay in the index. Once killed or revoked, none of its keys works, and only
<a href="${pathWith("/fleet/invite", { renews: name })}">reissued credentials</a> bring it back.`),
        group("choices", [
          !revoked &&
            state !== "draining" &&
            card(
              "Drain: hand over first",
              html`For a machine that stops for good or for a while. It stays in the fleet; <em>Resume</em> brings it back, with the
subnet that it is in.`,
              [html`It gets no new pages${has && html`, and finishes its ${leases}`}.`, handOver(found, "")],
              actions({ operation: drainCrawler, path, label: `Drain ${name}` }),
            ),
          card(
            "Kill: hand over at once",
            "For a lost machine, or one that nobody is responsible for.",
            [
              session,
              has
                ? html`Its ${leases} ${openLeases === 1 ? "returns" : "return"} now, and its pages are reassigned.`
                : noLeases,
              handOver(found, " now, without waiting for it"),
            ],
            actions({ operation: killCrawler, path, label: `Kill ${name}`, typed: name }),
          ),
          card(
            "Revoke: only the keys",
            "For a leaked key, or a partner who takes a break.",
            [
              session,
              has ? "Its leases return when they expire." : noLeases,
              subnets === 0
                ? noSubnets
                : "It keeps its subnets for the departure delay; then they go to others.",
            ],
            actions({ operation: revokeCrawler, path, label: `Revoke ${name}`, typed: name }),
          ),
        ]),
        plain(html`<a href="${crawlerPath(name)}">Cancel</a>`),
      ]),
    };
  },
});

const noLeases = "It holds no leases.";
const noSubnets = "It has no subnets.";

/** The crawlers that would get its subnets. */
function handOver({ subnets, heirs }: Preview, when: string): Inline {
  if (subnets === 0) return noSubnets;
  const go = `${subnets === 1 ? "goes" : "go"} to others${when}`;
  const lines = heirs.map(({ crawler: heir, subnets: count, measured }) => {
    const near = measured
      ? "the next nearest with capacity, as measured"
      : "its neighbour: there is nothing to measure in them yet";
    const whom =
      heir === null
        ? "to the nearest crawler, after new measurements"
        : html`to ${crawlerOr(heir, "")}, ${near}`;
    return html`<li>${howMany(count, "subnet")}: ${whom}</li>`;
  });
  return html`Its <strong>${howMany(subnets, "subnet")}</strong> ${go}${
    heirs.length === 0 ? "." : html`:<ul class="plain">${lines}</ul>`
  }`;
}

export const crawlerOperations = { crawler, shutOutPreview };
