/** `nearcrawl fleet show`: one crawler in plain sentences, as the coordinator has noted it. */

import { Command } from "commander";
import type { Pool } from "pg";
import { type CrawlerRecord, crawlerRecord } from "#coordinator/fleet/crawler-reads";
import { stateWords } from "#coordinator/fleet/fleet-entry";
import { standingWords } from "#coordinator/trust/judge-crawler";
import { createReports } from "#coordinator/who/reads";
import type { ChartHistory } from "#core/chart-history";
import { commandContext } from "../command-context.ts";
import { askedRange, type RangeOptions, withHistory, withRange } from "../history-text.ts";
import { printAnswer, printable } from "../output.ts";
import { readDatabase, withDatabaseOptions } from "../read-database.ts";
import { checkedName, nobodyOfThatName, printWatched, type WatchedOptions, withWatch } from "./watched.ts";

export function showCommand(): Command {
  return withRange(withWatch(withDatabaseOptions(new Command("show"))))
    .argument("<name>", "the crawler's name", checkedName)
    .description(
      "one crawler: online or offline since when and why, its last message, limits, releases, incidents, trust",
    )
    .action(async (name: string, options: ShowOptions) => {
      if (options.watch) return await watchOne(name, options);
      const record = await readDatabase(
        commandContext(options),
        async ({ pool }) => await readRecord(pool, name, options),
      );
      if (record === null) return nobodyOfThatName(name);
      printAnswer(options, record, withHistory(recordText(record), record.history));
    });
}

type ShowOptions = WatchedOptions & RangeOptions;

async function watchOne(name: string, options: ShowOptions): Promise<void> {
  await printWatched(
    options,
    async ({ pool }) => await readRecord(pool, name, options),
    (record) =>
      record === null
        ? `there is no crawler ${name}: nearcrawl fleet list`
        : withHistory(recordText(record), record.history),
  );
}

async function readRecord(
  pool: Pool,
  name: string,
  options: RangeOptions,
): Promise<(CrawlerRecord & { readonly history?: ChartHistory }) | null> {
  const now = new Date();
  const range = askedRange(options, now);
  const record = await crawlerRecord(pool, name, now);
  if (record === null || range === null) return record;
  return {
    ...record,
    history: await createReports(pool, () => performance.now()).crawlerCharts(record, range),
  };
}

/** Words of a crawler cannot steer the terminal. */
export function recordText(record: CrawlerRecord): string {
  return [
    `${record.name}: ${stateSentence(record)}`,
    ...pastLines(record),
    ...adviceLines(record),
    "",
    ...identityLines(record),
    ...limitLines(record),
    ...holdingLines(record),
    ...releaseLines(record),
    trustLine(record),
    ...incidentLines(record),
  ].join("\n");
}

function stateSentence({
  state,
  revoked,
  connectedAt,
  lastSeenAt,
  offlineReason,
  draining,
}: CrawlerRecord): string {
  if (revoked) return "access revoked; nearcrawl fleet reinvite brings it back.";
  if (lastSeenAt === null) return "it has never connected.";
  if (state === "offline")
    return `offline since ${minute(lastSeenAt)}: ${words(offlineReason ?? "no reason was recorded")}.`;
  const since = connectedAt === null ? "" : ` since ${minute(new Date(connectedAt))}`;
  return draining === null
    ? `connected${since}.`
    : `connected${since}, and hands its subnets over, as the ${draining.askedBy} asked at ${minute(draining.since)}.`;
}

function adviceLines(record: CrawlerRecord): string[] {
  const { advice } = stateWords({ ...record, connectedAt: null });
  return advice === null ? [] : [`What to do: ${advice}`];
}

function pastLines({ identity: { lastAway, lastEnd } }: CrawlerRecord): string[] {
  return [
    ...(lastAway === null
      ? []
      : [`Away before that from ${minute(lastAway.since)}: ${words(lastAway.reason)}.`]),
    ...(lastEnd === null ? [] : [`Its last message, at ${minute(lastEnd.at)}: ${words(lastEnd.reason)}`]),
  ];
}

function identityLines({ identity, place, softwareVersion }: CrawlerRecord): string[] {
  const { publicKey, keySince, scopes, signingKey, seenAddress, addressBefore, addressChangedAt, copiedAt } =
    identity;
  const moved =
    addressBefore === null || addressChangedAt === null
      ? ""
      : ` (${addressBefore} until ${minute(addressChangedAt)})`;
  return [
    labelled("identity", publicKey === null ? "none: it shows only its key" : publicKey),
    labelled(
      "key",
      keySince === null ? "none that is valid" : `since ${minute(keySince)}, to ${scopes.join(" and ")}`,
    ),
    labelled("signs with", signingKey === null ? "its identity, or not at all" : signingText(signingKey)),
    labelled("seen at", seenAddress === null ? "never" : `${seenAddress}${moved}`),
    ...(place === null ? [] : [labelled("place", words(place))]),
    labelled("software", softwareVersion === null ? "not known" : words(softwareVersion)),
    ...(copiedAt === null
      ? []
      : [labelled("ATTENTION", `its folder was copied: seen twice at ${minute(copiedAt)}`)]),
  ];
}

function signingText({
  publicKey,
  keyId,
  since,
  until,
}: NonNullable<CrawlerRecord["identity"]["signingKey"]>) {
  return `${publicKey} since ${minute(since)}, until ${minute(until)} at the latest; keyid ${keyId}`;
}

function limitLines(record: CrawlerRecord): string[] {
  const { pagesToday, pagesPerDay, bytesToday, bytesPerDay, concurrentHosts, probeMethods, speaksIpv6 } =
    record;
  const unmeasured = record.unmeasured === 0 ? "" : ` (${count(record.unmeasured)} not measured yet)`;
  const probes = probeMethods.length === 0 ? "none" : probeMethods.join(", ");
  return [
    labelled(
      "today",
      `${count(pagesToday)} of ${count(pagesPerDay)} pages, ${count(bytesToday)} of ${count(bytesPerDay)} bytes`,
    ),
    labelled(
      "it allows",
      `${count(concurrentHosts)} sites at a time, probes by ${probes}${speaksIpv6 === null ? "" : `, ${speaksIpv6 ? "IPv6, too" : "no IPv6"}`}`,
    ),
    labelled(
      "work",
      `${count(record.subnets)} subnets${unmeasured}, ${count(record.openLeases)} leases open`,
    ),
  ];
}

function holdingLines({ holdingBack, state }: CrawlerRecord): string[] {
  if (state === "offline") return [];
  if (holdingBack.length === 0) return [labelled("idle because", "nothing, it says")];
  return holdingBack.map((reason, index) => labelled(index === 0 ? "idle because" : "", words(reason)));
}

function releaseLines({ release, offers, identity, state }: CrawlerRecord): string[] {
  if (release === null) {
    const hasJoined = identity.publicKey !== null && state === "offline";
    return [labelled("release", hasJoined ? "none has run there yet" : "none: no supervisor runs it")];
  }
  return [
    labelled(
      "release",
      `${release.version} under supervisor ${words(release.dockVersion)}; ${words(release.policy)}`,
    ),
    ...offers.map(({ version, state, reason, reportedAt, offeredAt }) =>
      labelled(
        "",
        `${version} ${state ?? "offered"} at ${minute(reportedAt ?? offeredAt)}${reason === "" ? "" : `: ${words(reason)}`}`,
      ),
    ),
  ];
}

function trustLine({ name, trust }: CrawlerRecord): string {
  const { standing, comparisons, distrusted, probesDoubted } = trust;
  const against = comparisons.alone + comparisons.once;
  const why = [distrusted, probesDoubted]
    .flatMap((one) => (one === null ? [] : [`; ${words(one.words)}`]))
    .join("");
  return labelled(
    "trust",
    `${standingWords[standing]}: ${count(comparisons.agreed)} pages agree with others', ${count(against)} do not${why} (nearcrawl fleet trust ${name})`,
  );
}

function incidentLines({ incidents }: CrawlerRecord): string[] {
  if (incidents.length === 0) return [labelled("incidents", "none in the last week")];
  return incidents.map(({ lastAt, kind, count: times, words: said }, index) =>
    labelled(
      index === 0 ? "incidents" : "",
      `${minute(lastAt)} ${kind}, ${count(times)} times: ${words(said)}`,
    ),
  );
}

const labelled = (label: string, text: string) => `  ${label.padEnd(14)}${text}`;
const words = (text: string) => printable(text, 300);
const count = (value: number) => value.toLocaleString("en");
const minute = (at: Date) => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
