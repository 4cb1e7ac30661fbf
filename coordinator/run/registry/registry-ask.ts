/** The /registry page: the generation in force and its age, the steps of a refresh, and the effect of a rollback. */
import { z } from "zod";
import { bytesText, howMany } from "#core/format";
import { goingWords, isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { RegistryStatus } from "#rir-import/status";
import {
  actions,
  column,
  countColumns,
  empty,
  facts,
  folded,
  form,
  lead,
  list,
  note,
  plain,
  present,
  section,
  table,
  tiles,
  warning,
} from "../../ask/document.ts";
import {
  type Action,
  type Column,
  type Document,
  type Node,
  operationsOf,
  type Seen,
} from "../../ask/operation.ts";
import { ago, countText, instant } from "../../web/format.ts";
import { html, nothing } from "../../web/html.ts";
import { jobPanel, jobTable, stateLook } from "./job-ask.ts";
import {
  applyRegistry,
  cancelRegistryJob,
  fetchRegistry,
  holdingFolder,
  planRegistry,
  rollBackRegistry,
  rollForwardRegistry,
} from "./orders-ask.ts";
import { fileColumns, meantWords, registryLink } from "./plan-ask.ts";
import { registryOverview } from "./registry-api.ts";
import {
  emptyConfirmation,
  type PastGeneration,
  type RegistryPorts,
  type RegistryValue,
  registryValue,
  rollbackConfirmation,
  warningsOf,
} from "./registry-view.ts";

const { get } = operationsOf<RegistryPorts>();

const registry = get({
  ...{ path: "/api/registry", needs: "read" },
  navigation: { group: "Crawl", order: 60, entry: "Registry" },
  alsoFound: "rir import data dumps plan apply arin ripe apnic lacnic afrinic",
  summary: "The generation in force, its age and make-up, generations before, the download cache, the jobs",
  input: z.object({}),
  output: registryOverview,
  run: async ({ ports, actor, now }) => await registryValue(ports, actor, now),
  view: registryDocument,
});

export const registryOperations = {
  registry,
  fetchRegistry,
  planRegistry,
  applyRegistry,
  rollBackRegistry,
  rollForwardRegistry,
  cancelRegistryJob,
};

function registryDocument(value: RegistryValue, { viewer }: Pick<Seen<unknown>, "viewer">): Document {
  const { runningJob, isImportRunning, warnings, counted, sources, history, jobs, publishers } = value;
  const isOpen = value.canStartJobs && runningJob === null;
  const last = history.find(({ canRollForward }) => canRollForward);
  const outside =
    "An import or rollback that was started by command is running. Reload the page to see whether it has ended.";
  return {
    title: "Registry",
    nodes: present([
      ...(value.generation === null && last !== undefined
        ? emptiedNodes(last, isOpen)
        : [leadNode(value, value.now)]),
      ...warnings.map(warning),
      runningJob === null ? isImportRunning && warning(outside) : jobPanel(runningJob, viewer),
      ...countedNodes(value),
      section("Refresh, once a quarter", refreshNodes(value), { kind: "refresh-steps" }),
      counted && section("Contents", [countsTable(counted, sources)]),
      sources.length > 0 &&
        folded(`The ${howMany(sources.length, "file")} that it was made from`, [sourcesTable(sources)]),
      rollbackSection(value, isOpen),
      history.length > 0 && section("Generations", [historyTable(history, isOpen)]),
      cacheSection(value),
      jobs.length > 0 &&
        section("Latest jobs", [jobTable(jobs), note(html`<a href="/registry/jobs">All jobs</a>`)]),
      section("Who publishes it, on which terms", [
        facts(...publishers.map(publisherFact)),
        note(
          `Hints, no advice: what counts is what the registries say. The cache holds their data; keep its folder to this service.`,
        ),
      ]),
    ]),
  };
}

const publisherFact = ({ name, region, publishes, terms, termsUrl }: RegistryValue["publishers"][number]) =>
  [name, html`${region}: ${publishes}. ${terms} <a href="${termsUrl}" rel="noreferrer">Terms</a>`] as const;

const forward = (generation: number): Action => ({
  ...{ operation: rollForwardRegistry, values: { generation }, label: "Put in force again" },
});

/** If no registry is in force, a rollback is undone in one step. */
const emptiedNodes = ({ generation }: PastGeneration, isOpen: boolean): (Node | false)[] => [
  warning(html`<strong>No registry is in force any more</strong>: generation ${generation} was rolled back, and all of IPv4 and
all of IPv6 are one subnet each. It can be put in force again, with its delegations: <code>nearcrawl rir rollforward</code>.`),
  isOpen && actions(forward(generation)),
];

function leadNode(
  { generation, appliedAt }: Pick<RegistryValue, "generation" | "appliedAt">,
  now: string,
): Node {
  if (generation === null || appliedAt === null)
    return empty(
      "No registry has been imported yet, so no address has a holder.",
      html`Fetch the registries’ files and plan an import below, or on the coordinator’s machine: <code>nearcrawl rir
fetch</code>, <code>nearcrawl rir plan --cache</code>, <code>nearcrawl rir apply --cache</code>.`,
    );
  return lead(
    html`<strong>Generation ${generation}</strong> has been in force since ${instant(appliedAt)} (${ago(appliedAt, now)}).`,
  );
}

/** Shows the tree in force and its age, as `nearcrawl rir status` does. */
export function statusNodes(status: RegistryStatus, now: Date): readonly Node[] {
  const { generation, counted, sources, history, ipv4Subnets, ipv6Subnets, holders, delegations } = status;
  const about = [leadNode(status, now.toISOString()), ...warningsOf(status, now).map(warning)];
  if (generation === null) return about;
  return present([
    ...about,
    facts(
      ["IPv4 subnets", countText(ipv4Subnets)],
      ["IPv6 subnets", countText(ipv6Subnets)],
      ["Holders", countText(holders)],
      ["Delegations", countText(delegations)],
    ),
    counted && section("Contents", [countsTable(counted, sources)]),
    section("Files", [sourcesTable(sources)]),
    section("Generations", [historyTable(history, false)]),
  ]);
}

function countedNodes({ counted, generation, ageDays }: RegistryValue): (Node | false)[] {
  if (generation === null) return [];
  if (counted === null)
    return [
      note(
        "The tree was imported by an older version, without counts by registry; the next import has them.",
      ),
    ];
  const sum = (name: "subnets" | "ipv4Addresses" | "ipv6Slash48s") =>
    counted.registries.reduce((total, one) => total + (one.registry === "iana" ? 0 : one[name]), 0);
  return [
    tiles([
      ["Age", howMany(ageDays ?? 0, "day"), "a quarter has 92"],
      ["Subnets", countText(sum("subnets")), "of the five registries"],
      ["IPv4 covered", shortCount(sum("ipv4Addresses")), "addresses lie in a subnet"],
      ["IPv6 covered", shortCount(sum("ipv6Slash48s")), "blocks of a /48 lie in a subnet"],
      ["Overlapping ranges", countText(counted.crossings), "pairs of ranges that overlap in part"],
    ]),
    counted.generation !== generation &&
      note(`Counted with generation ${counted.generation}; some subnets have been probed again since.`),
  ];
}

const short = new Intl.NumberFormat("en-GB", {
  ...{ notation: "compact", compactDisplay: "long", maximumFractionDigits: 1 },
});

const shortCount = (count: number) => (count < 100_000 ? countText(count) : short.format(count));

/** The forms are shown only while no job runs. */
function refreshNodes({
  jobs,
  cache,
  filesFolder,
  canStartJobs,
  runningJob,
}: RegistryValue): readonly Node[] {
  if (!canStartJobs)
    return [
      plain(html`This coordinator cannot start jobs. On its machine: <code>nearcrawl rir fetch</code>, <code>plan</code>,
<code>apply</code>, <code>rollback</code>.`),
    ];
  const plan = jobs.find(({ order, state }) => order.type === "plan" && state === "done");
  const files = cache?.sources.filter(({ bytes }) => bytes !== null).length ?? 0;
  const had =
    files === 0 ? "Nothing was fetched yet." : `${files} files are cached; only changes are fetched.`;
  const noContact =
    " No contact is set: name one in registry-sources.json, so that registries can write to somebody.";
  const isOpen = runningJob === null;
  const folders = filesFolder && {
    ...{ "": "what was fetched", [holdingFolder]: filesFolder.path },
    ...Object.fromEntries(filesFolder.names.map((name) => [name, `${filesFolder.path}/${name}`])),
  };
  const latest = plan
    ? html`The latest: <a href="/registry/plans/${plan.jobId}">plan ${plan.jobId}</a>, of
${instant(plan.endedAt ?? plan.startedAt)}.`
    : "There is no plan yet.";
  return [
    section("Fetch what the registries publish", [
      plain(`${had}${cache?.contact === null ? noContact : ""}`),
      isOpen && form({ operation: fetchRegistry, label: "Fetch" }),
    ]),
    section("Plan the import", [
      plain(
        "Reads all files and compares them with the tree in force: what would be added, removed, changed.",
      ),
      isOpen &&
        form({
          ...{ operation: planRegistry, label: "Plan" },
          ...(folders
            ? { without: ["from"], choices: { folder: folders } }
            : { without: ["from", "folder"] }),
        }),
    ]),
    section("Review the plan and apply it", [plain(html`Nothing changes before that. ${latest}`)]),
  ];
}

function rollbackSection({ rollback }: RegistryValue, isOpen: boolean): Node | null {
  if (rollback === null) return null;
  const { generation, becomes, becomesAppliedAt, removed, broughtBack, restored, inUse } = rollback;
  const applied = becomesAppliedAt === null ? nothing : html`, applied ${instant(becomesAppliedAt)},`;
  const after =
    becomes === null
      ? "No registry would be in force, and no subnet but the two roots of the address space."
      : html`Generation ${becomes}${applied} would be in force again.`;
  const going =
    inUse !== null &&
    html` Of the subnets that would go: <strong>${goingWords(inUse)}</strong>, delegated or with hosts in the frontier.`;
  const isMuch = inUse !== null && isMuchInUse(inUse);
  const asked = html`${becomes === null && "It is the first import: to remove the only registry, type what is asked for. "}${
    isMuch && meantWords(inUse)
  }`;
  const rollBack = form({
    ...{ operation: rollBackRegistry, label: `Roll back generation ${generation}`, kind: "danger" },
    ...{ values: { generation }, ...(becomes === null || isMuch ? { words: asked } : {}) },
    without: ["generation", "toEmpty", ...(inUse === null || isMuch ? [] : ["removeInUse"])],
    ...(isMuch && becomes !== null
      ? {}
      : { typed: becomes === null ? emptyConfirmation : rollbackConfirmation(generation) }),
  });
  return section(
    "Roll back",
    [
      plain(html`${after} ${countText(removed)} subnets would go, ${countText(broughtBack)} restored, ${countText(restored)} as
they were before; delegations come back with their subnets.${going} What is rolled back can be put in force again below, as long
as nothing else was applied in its place.`),
      isOpen && rollBack,
    ],
    { id: "rollback" },
  );
}

function historyTable(history: readonly PastLine[], isOpen: boolean): Node {
  const sum = (key: string, ...kinds: readonly string[]): Column<PastLine> => ({
    ...{ key, title: `${key[0]!.toUpperCase()}${key.slice(1)}`, unit: "count" },
    cell: ({ changes }) => kinds.reduce((total, kind) => total + (changes[kind] ?? 0), 0),
  });
  const by = (name: string | null | undefined) => (name ? ` by ${name}` : "");
  return table<PastLine>({
    ...{ label: "Generations", rows: history, empty: ["No generation.", ""] },
    columns: [
      column("generation", "Generation", ({ generation }) => generation, { kind: "number" }),
      column("state", "State", ({ state, rolledBackBy }) =>
        state === "applied" ? "applied" : `rolled back${by(rolledBackBy)}`,
      ),
      column("applied_at", "Applied", ({ appliedAt }) => appliedAt && new Date(appliedAt)),
      column("applied_by", "By", ({ appliedBy }) => appliedBy),
      ...[sum("added", "added", "returned"), sum("removed", "removed")],
      ...[sum("changed", "changed"), sum("moved", "moved")],
    ],
    actions: ({ generation, canRollForward }) => (canRollForward && isOpen ? [forward(generation)] : []),
  });
}

/** The output of a command does not say who did it. */
type PastLine = Omit<PastGeneration, "appliedBy" | "rolledBackBy"> &
  Partial<Pick<PastGeneration, "appliedBy" | "rolledBackBy">>;

type Counts = NonNullable<RegistryValue["counted"]>["registries"][number];

function countsTable(
  { registries }: NonNullable<RegistryValue["counted"]>,
  sources: RegistryValue["sources"],
): Node {
  return table<Counts>({
    ...{ label: "Counts by registry", rows: registries, empty: ["Nothing was counted.", ""] },
    columns: [
      column("registry", "Registry", ({ registry }) => registryLink(registry)),
      ...countColumns<Counts>({
        subnets: "Subnets",
        ipv4Subnets: "IPv4",
        ipv6Subnets: "IPv6",
        holders: "Holders",
      }),
      ...countColumns<Counts>({
        ipv4Addresses: "IPv4 addresses",
        ipv6Slash48s: "IPv6 /48s",
        crossing: "Crossing",
      }),
      column("age_days", "Data, days old", ({ registry }) => newestAge(sources, registry), { unit: "count" }),
    ],
  });
}

/** Leaves out single answers of a registry (RDAP), which do not show how old its files are. */
function newestAge(sources: RegistryValue["sources"], registry: string): number | null {
  const ages = sources
    .filter((source) => source.registry === registry && source.format !== "rdap")
    .flatMap(({ ageDays }) => ageDays ?? []);
  return ages.length === 0 ? null : Math.min(...ages);
}

type SourceInForce = RegistryValue["sources"][number];

const sourcesTable = (sources: readonly SourceInForce[]): Node =>
  table<SourceInForce>({
    ...{ label: "Files in force", rows: sources, empty: ["None.", ""] },
    columns: [
      ...fileColumns<SourceInForce>(),
      ...countColumns<SourceInForce>({ ageDays: "Days old", kept: "Records kept", malformed: "Refused" }),
    ],
  });

function cacheSection({ cache }: RegistryValue): Node | null {
  if (cache === null || cache.fault !== null) return null;
  const { sources, folder, contact } = cache;
  return section("Download cache", [
    note(html`${completeWords(sources)} ${sizeWords(sources)}Kept in <span class="mono break">${folder}</span>. Contact:
${contact ?? "none"}.`),
    ...cachedNodes(sources),
  ]);
}

type CachedSource = NonNullable<RegistryValue["cache"]>["sources"][number];

export function sizeWords(sources: readonly CachedSource[]): string {
  const there = sources.filter(({ bytes }) => bytes !== null);
  const bytes = there.reduce((sum, source) => sum + (source.bytes ?? 0), 0);
  return there.length === 0 ? "" : `${howMany(there.length, "file")}, ${bytesText(bytes)}. `;
}

export function completeWords(sources: readonly CachedSource[]): string {
  const missing = sources.filter(({ state }) => state === "missing" || state === "changed on disk");
  if (missing.length === 0) return "Complete.";
  const wanted = sources.filter(({ state }) => state !== "off" && state !== "not set up");
  if (missing.length === wanted.length) return "Nothing was fetched yet.";
  return `Not complete, ${missing.map(({ name }) => name).join(", ")} ${missing.length === 1 ? "is" : "are"} missing.`;
}

const stateLooks: Readonly<Record<CachedSource["state"], string>> = {
  ...{ fresh: "good", stale: "warm", "old at its source": "warm", missing: "bad", "changed on disk": "bad" },
  ...{ "not set up": "none", off: "none", "not in the list": "none" },
};

/** Shows the sources and how old our copies are, also for `nearcrawl rir sources`. */
export function cachedNodes(sources: readonly CachedSource[]): readonly Node[] {
  const onRequest = sources.flatMap(({ name, access: { how }, state }) =>
    how !== undefined && state === "not set up" ? [`${name}, on request: ${how}`] : [],
  );
  return present([
    table<CachedSource>({
      ...{ label: "Download cache", rows: sources, empty: ["No source is listed.", ""] },
      columns: [
        column("source", "Source", ({ name }) => name, { more: ({ url }) => url, kind: "wide break" }),
        column("registry", "Registry", ({ registry }) => registry),
        column("state", "Our copy", ({ state }) => stateLook(stateLooks[state], state)),
        column("bytes", "Size", ({ bytes }) => bytes, { unit: "bytes" }),
        column("data_date", "Data of", ({ dataDate }) => dataDate && new Date(dataDate)),
        ...countColumns<CachedSource>({ dataAgeDays: "Days old", checkedDaysAgo: "Asked, days ago" }),
      ],
    }),
    onRequest.length > 0 && list(onRequest),
  ]);
}
