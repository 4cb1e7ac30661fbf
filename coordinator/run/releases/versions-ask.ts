/**
 * The /fleet/versions page: who is offered which release, who runs what, and forms to offer and hold. Signing needs
 * the command.
 */
import { z } from "zod";
import {
  actions,
  column,
  empty,
  form,
  lead,
  list,
  plain,
  present,
  section,
  table,
} from "../../ask/document.ts";
import { type Node, operationsOf, type Seen } from "../../ask/operation.ts";
import { dateTime, record } from "../../web/api-operation.ts";
import { crawlerOr, small } from "../../web/components.ts";
import { countText, instant } from "../../web/format.ts";
import { type HtmlValue, html } from "../../web/html.ts";
import type { ReleaseFleetStore } from "./fleet-store.ts";
import { holdRelease, judgeStage, stageRelease } from "./move-stage.ts";
import type { ReleaseStore } from "./release-store.ts";
import { defaultSoakMinutes, noCounts } from "./staging.ts";

interface VersionPorts {
  readonly releases: Pick<ReleaseStore, "list" | "setStage">;
  readonly releaseFleet: Pick<ReleaseFleetStore, "counts" | "crawlers" | "watched">;
}

const stage = z.enum(["none", "one", "percent", "all"]);
const states = ["offered", "running", "returned", "pinned", "delayed", "refused"] as const;

const counted = {
  ...{ offered: z.int(), refused: z.int(), pinned: z.int() },
  ...{ delayed: z.int(), running: z.int(), returned: z.int() },
};

const release = z.strictObject({
  version: z.string(),
  sequence: z.int(),
  digest: z.string(),
  expiresAt: dateTime(),
  publishedAt: dateTime(),
  revoked: z.boolean(),
  trusted: z.boolean(),
  stage,
  percent: z.number().nullable(),
  stageSince: dateTime().nullable(),
  stageWords: z.string(),
  soakMinutes: z.int().nullable(),
  firstCrawler: z.string().nullable().describe("That got it first."),
  crawlers: z.strictObject(counted),
  standing: z.string().nullable().describe("Of a release that moves by itself: how far it is."),
});

const crawler = z.strictObject({
  crawlerId: z.int(),
  name: z.string(),
  online: z.boolean(),
  digest: z.string(),
  runsVersion: z.string(),
  dockVersion: z.string(),
  policy: z.string(),
  reports: z.record(z.string(), z.string().nullable()),
});

const staged = z.strictObject({
  version: z.string(),
  stage,
  percent: z.number().nullable(),
  crawlers: z.array(z.string()),
});

const { get, post } = operationsOf<VersionPorts>();

const version = z.string().meta({ description: "A published release.", example: "1.4.0" });
const faults = { 409: "It cannot be offered; the message says why" };

async function offer(wished: Parameters<typeof stageRelease>[0], ports: VersionPorts, now: Date) {
  const { entry, members } = await stageRelease(wished, ports, now);
  const { version, stage, percent, soakMinutes } = entry;
  return { version, stage, percent, crawlers: members, soakMinutes };
}

type Offered = Awaited<ReturnType<typeof offer>>;

const told = ({ soakMinutes: _, ...shown }: Offered) => shown;

function change({ version, crawlers, stage, percent, soakMinutes }: Offered) {
  const more = crawlers.length > 10 ? ` and ${crawlers.length - 10} more` : "";
  const whom = crawlers.slice(0, 10).join(", ") || "no crawler that takes releases yet";
  return {
    ...{ action: "release-staged", target: `release ${version}`, after: { stage, percent, soakMinutes } },
    words: `${version} is offered to ${whom}${more}.`,
  };
}

const offerRelease = post({
  ...{ path: "/api/fleet/versions/{version}/stage", needs: "fleet-write" },
  summary: "Offer a release to one crawler, to a share of them, or to all",
  input: z.object({
    version,
    to: z.string().min(1).max(68).meta({
      title: "Offer to",
      description: "one, one=NAME, a percentage such as 5%, or all.",
    }),
    again: z.boolean().default(false).describe("Offer it again to crawlers that rolled back from it."),
  }),
  ...{ output: staged, example: { to: "one=athens" }, faults, told, change },
  command: {
    name: "release stage",
    help: `

Examples:
  nearcrawl release stage 1.4.0 --to one=athens
  nearcrawl release stage 1.4.0 --to 5%
  nearcrawl release stage 1.4.0 --to all`,
  },
  run: async ({ input, ports, now }) => await offer({ ...input, to: input.to.trim() }, ports, now),
});

const autoRelease = post({
  ...{ path: "/api/fleet/versions/{version}/auto", needs: "fleet-write" },
  summary: "Offer a release to one crawler, then 5 %, then all, as long as all goes well",
  input: z.object({ version, soakMinutes: z.int().min(1).max(100_000).default(defaultSoakMinutes) }),
  ...{ output: staged, example: {}, faults, told, change },
  command: {
    name: "release auto",
    help: `

It moves on when all who took it have run it for the soak time. It is held when a crawler rolls back from it, or when
those that took it are offline, or fail through their own fault, more than the others. Partners who pin or delay are not
waited for. A running coordinator does this; nearcrawl release list shows its progress.`,
  },
  run: async ({ input, ports, now }) => await offer({ ...input, to: "one" }, ports, now),
});

const hold = post({
  ...{ path: "/api/fleet/versions/{version}/hold", needs: "fleet-write" },
  summary: "Hold a release",
  input: z.object({ version, reason: z.string().min(1).max(500).default("held by an operator") }),
  output: z.strictObject({ version: z.string(), stage: z.enum(["none"]) }),
  ...{ example: { reason: "too many failures" }, faults },
  command: {
    ...{
      name: "release hold",
      says: "stop offering a release: crawlers that have it keep it, no others get it",
    },
  },
  run: async ({ input: { version, reason }, ports, now }) => {
    await holdRelease(version, reason, ports, now);
    return { version, stage: "none" as const, reason };
  },
  told: ({ version, stage }) => ({ version, stage }),
  change: ({ version, reason }) => ({
    ...{ action: "release-held", target: `release ${version}`, after: { reason } },
    words: `${version} is no longer offered; crawlers that run it keep it.`,
  }),
});

const fleetVersions = get({
  ...{ path: "/api/fleet/versions", needs: "fleet-read" },
  navigation: { group: "Fleet", order: 40, entry: "Versions", tab: "Versions" },
  alsoFound: "releases software upgrade",
  summary: "Releases, who is offered each, and who runs what",
  input: z.object({}),
  output: record("FleetVersions", { releases: z.array(release), docks: z.array(crawler) }),
  command: { name: "release list" },
  run: async ({ ports, now }) => await versionsNow(ports, now),
  view: ({ releases, docks }, seen) => ({
    title: "Versions",
    nodes: present([
      lead(html`A release is signed with <code>nearcrawl release sign</code>, or by the coordinator while its own key is
valid. It is then offered to one crawler, to a percentage, to all; crawlers roll back by themselves from one that fails.`),
      ...releases.map((one) => releaseSection(one, seen)),
      releases.length === 0 &&
        empty(
          "No release is published.",
          html`The coordinator publishes the first one at its start if the crawler's bundle is installed beside it;
<code>nearcrawl release publish</code> takes one that you signed.`,
        ),
      section("Crawlers by release", [crawlerTable(docks)]),
    ]),
  }),
});

export const versionOperations = {
  fleetVersions,
  stageRelease: offerRelease,
  autoRelease,
  holdRelease: hold,
};

async function versionsNow({ releases, releaseFleet }: VersionPorts, now: Date) {
  const [entries, counts, docks] = await Promise.all([
    releases.list(),
    releaseFleet.counts(),
    releaseFleet.crawlers(),
  ]);
  const judged = entries.map(async (entry) => {
    const { firstCrawlerId, ...shown } = entry;
    const moves = entry.soakMinutes !== null && entry.stage !== "none";
    return {
      ...shown,
      firstCrawler: docks.find(({ crawlerId }) => crawlerId === firstCrawlerId)?.name ?? null,
      crawlers: counts.get(entry.version) ?? noCounts,
      standing: moves ? (await judgeStage(entry, { releaseFleet }, now)).words : null,
    };
  });
  return {
    releases: await Promise.all(judged),
    docks: docks.map((one) => ({ ...one, reports: Object.fromEntries(one.reports) })),
  };
}

type Versions = Awaited<ReturnType<typeof versionsNow>>;
export type ReleaseLine = Versions["releases"][number];

function releaseSection(one: ReleaseLine, { now }: Pick<Seen<unknown>, "now">): Node {
  const { version, publishedAt, expiresAt, crawlers, revoked, stage } = one;
  const path = { version };
  const dates = html`published ${instant(publishedAt)}, signed until ${instant(expiresAt)}`;
  const next = stage === "none" ? "one" : stage === "one" ? "5%" : "all";
  return section(html`${version} ${small(dates)}`, [
    plain(html`Offered to <strong>${stageWords(one)}</strong>. ${small(remark(one, now))}`),
    list(
      states.map((state) => html`${state} <strong>${countText(crawlers[state])}</strong>`),
      "shares",
    ),
    !revoked &&
      form({ operation: offerRelease, label: "Offer", path, values: { to: next }, without: ["again"] }),
    !revoked &&
      actions(
        { operation: autoRelease, path, label: "Roll out in stages" },
        stage !== "none" && { operation: hold, path, label: "Hold" },
      ),
  ]);
}

function stageWords({ stage, percent, firstCrawler }: ReleaseLine): string {
  if (stage === "none") return "nobody";
  if (stage === "one") return `one (${firstCrawler ?? "gone"})`;
  return stage === "percent" ? `${percent} %` : "all";
}

function remark(one: ReleaseLine, now: Date): HtmlValue {
  const { revoked, trusted, expiresAt, standing, stageSince, stageWords } = one;
  if (revoked) return stageWords || "revoked";
  if (!trusted) return "its key was retired: sign it again";
  if (expiresAt <= now) return html`expired on ${instant(expiresAt)}: sign it again`;
  if (standing !== null) return `advances automatically: ${standing}`;
  if (stageSince === null) return stageWords;
  return html`Since ${instant(stageSince)}${stageWords === "" ? "." : `: ${stageWords}.`}`;
}

const crawlerTable = (docks: Versions["docks"]): Node =>
  table<Versions["docks"][number]>({
    ...{ label: "Crawlers by release", rows: docks },
    empty: [
      "No crawler that takes releases has connected yet.",
      html`<a href="/fleet/invite">Add a partner</a>.`,
    ],
    columns: [
      column("crawler", "Crawler", ({ name }) => crawlerOr(name, ""), {
        more: ({ online }) => (online ? null : "offline"),
      }),
      column("runs", "Runs", ({ runsVersion }) => runsVersion),
      column("supervisor", "Supervisor", ({ dockVersion }) => dockVersion),
      column("policy", "Partner's policy", ({ policy }) => policy),
      column("rolled_back_from", "Rolled back from", ({ reports }) =>
        Object.keys(reports)
          .filter((one) => reports[one] === "returned")
          .join(", "),
      ),
    ],
  });
