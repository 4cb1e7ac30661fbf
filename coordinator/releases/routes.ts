/** Releases: looked at, offered, held; what needs a signature is done with the release commands. */

import { mayDo } from "#core/actor";
import type { Actions, Outcome } from "../web/actions.ts";
import { buttonForm, column, crawlerOr, dataTable, empty, titleRow } from "../web/components.ts";
import { usageFault } from "../web/form-fields.ts";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { Views } from "../web/views.ts";
import type { ReleaseFleetStore } from "./fleet-store.ts";
import { holdRelease, judgeStage, stageRelease } from "./move-stage.ts";
import type { DockEntry, ReleaseCounts, ReleaseEntry, ReleaseStore } from "./release-store.ts";
import { versionsApi } from "./releases-api.ts";

const goTo = "/fleet/versions";

interface VersionPorts {
  readonly releases: Pick<ReleaseStore, "list" | "setStage">;
  readonly releaseFleet: Pick<ReleaseFleetStore, "counts" | "docks" | "watched">;
}

export function addVersionRoutes(views: Views, actions: Actions, ports: VersionPorts): void {
  views.describe({
    ...{ path: goTo, operation: versionsApi.fleetVersions },
    view: async ({ now }) => {
      const [releases, docks] = await Promise.all([releaseLines(ports, now), ports.releaseFleet.docks()]);
      const value = {
        releases,
        docks: docks.map((dock) => ({ ...dock, reports: Object.fromEntries(dock.reports) })),
      };
      return {
        status: 200,
        value,
        title: "Versions",
        body: (visit) => versionsBody({ releases, docks, now }, visit),
      };
    },
  });
  actions.describe({
    ...{ path: `${goTo}/:version/stage`, operation: versionsApi.stageRelease },
    fromForm: ({ to = "", again }) => ({ to: to.trim(), again: again === "yes" }),
    act: async ({ body, param, now }) => await stage({ ...body, version: param("version") }, ports, now),
  });
  actions.describe({
    ...{ path: `${goTo}/:version/auto`, operation: versionsApi.autoRelease },
    fromForm: () => ({}),
    act: async ({ body, param, now }) =>
      await stage({ version: param("version"), to: "one", ...body }, ports, now),
  });
  actions.describe({
    ...{ path: `${goTo}/:version/hold`, operation: versionsApi.holdRelease },
    fromForm: () => ({}),
    act: async ({ body, param, now }) => await hold(param("version"), body.reason, { ports, now }),
  });
}

async function stage(
  wished: Parameters<typeof stageRelease>[0],
  ports: VersionPorts,
  now: Date,
): Promise<Outcome> {
  const staged = await stageRelease(wished, ports, now).catch((error: unknown) =>
    usageFault(error, "Not offered"),
  );
  if ("type" in staged) return staged;
  const { entry, members } = staged;
  const { version, stage: reached, percent, soakMinutes } = entry;
  const whom = members.length === 0 ? "no crawler that takes releases yet" : members.slice(0, 10).join(", ");
  const words = `${version} is offered to ${whom}${members.length > 10 ? ` and ${members.length - 10} more` : ""}.`;
  const after = { stage: reached, percent, soakMinutes };
  return {
    type: "done",
    value: { version, stage: reached, percent, crawlers: members },
    ...{
      goTo,
      said: words,
      change: { action: "release-staged", target: `release ${version}`, words, after },
    },
  };
}

async function hold(
  version: string,
  reason: string,
  { ports, now }: { readonly ports: VersionPorts; readonly now: Date },
): Promise<Outcome> {
  const fault = await holdRelease(version, reason, ports, now).catch((error: unknown) =>
    usageFault(error, "Not held"),
  );
  if (fault) return fault;
  const words = `${version} is no longer offered; crawlers that run it keep it.`;
  const change = { action: "release-held", target: `release ${version}`, words, after: { reason } };
  return { type: "done", value: { version, stage: "none" }, goTo, said: words, change };
}

export interface ReleaseLine extends Omit<ReleaseEntry, "firstCrawlerId"> {
  /** Name of the crawler that got it first. */
  readonly firstCrawler: string | null;
  readonly crawlers: ReleaseCounts;
  /** Of a release that moves by itself: how far it is, in words; null for the others. */
  readonly standing: string | null;
}

const noCounts: ReleaseCounts = { offered: 0, refused: 0, pinned: 0, delayed: 0, running: 0, returned: 0 };

/** Newest first. */
async function releaseLines({ releases, releaseFleet }: VersionPorts, now: Date): Promise<ReleaseLine[]> {
  const [entries, counts, docks] = await Promise.all([
    releases.list(),
    releaseFleet.counts(),
    releaseFleet.docks(),
  ]);
  const lines: ReleaseLine[] = [];
  for (const entry of entries) {
    const { firstCrawlerId, ...shown } = entry;
    const moves = entry.soakMinutes !== null && entry.stage !== "none";
    lines.push({
      ...shown,
      firstCrawler: docks.find(({ crawlerId }) => crawlerId === firstCrawlerId)?.name ?? null,
      crawlers: counts.get(entry.version) ?? noCounts,
      standing: moves ? (await judgeStage(entry, { releaseFleet }, now)).words : null,
    });
  }
  return lines;
}

/** `one (athens)`, `5 %`, `all`, `nobody`. */
function stageText({
  stage,
  percent,
  firstCrawler,
}: Pick<ReleaseLine, "stage" | "percent" | "firstCrawler">): string {
  if (stage === "none") return "nobody";
  if (stage === "one") return `one (${firstCrawler ?? "gone"})`;
  return stage === "percent" ? `${percent} %` : "all";
}

/** Why it stands where it does, or what has to be done about it. */
function releaseRemark(release: ReleaseLine, now: Date): string {
  if (release.revoked) return release.stageWords || "revoked";
  if (!release.trusted) return "its key was retired: sign it again";
  if (release.expiresAt <= now)
    return `expired on ${release.expiresAt.toISOString().slice(0, 10)}: sign it again`;
  if (release.standing !== null) return `advances automatically: ${release.standing}`;
  const since = release.stageSince === null ? "" : `since ${release.stageSince.toISOString().slice(0, 16)}Z`;
  return `${since}${release.stageWords === "" ? "" : `: ${release.stageWords}`}`;
}

interface VersionsPage {
  readonly releases: readonly ReleaseLine[];
  readonly docks: readonly DockEntry[];
  readonly now: Date;
}

const states = ["offered", "running", "returned", "pinned", "delayed", "refused"] as const;

function versionsBody(page: VersionsPage, viewer: PageViewer): Html {
  return html`${titleRow("Versions")}
<p class="lead">A release is signed with <code>nearcrawl release sign</code>, or by the coordinator while its own key is
valid. It is then offered to one crawler, to a percentage, to all; crawlers roll back by themselves from one that fails.</p>
${
  page.releases.length === 0
    ? empty(
        "No release is published.",
        html`The coordinator publishes the first one at its start if the crawler's bundle is installed beside it;
<code>nearcrawl release publish</code> takes one that you signed.`,
      )
    : page.releases.map((release) => releaseSection(release, page.now, viewer))
}
${docksSection(page)}`;
}

function releaseSection(release: ReleaseLine, now: Date, viewer: PageViewer): Html {
  return html`<section class="release"><h2>${release.version} <span class="small">published
${instant(release.publishedAt.toISOString())}, signed until ${instant(release.expiresAt.toISOString())}</span></h2>
<p>Offered to <strong>${stageText(release)}</strong>. <span class="small">${remarkOn(release, now)}</span></p>
<ul class="shares">${states.map((state) => html`<li>${state} <strong>${countText(release.crawlers[state])}</strong></li>`)}</ul>
${mayDo(viewer.actor, "fleet-write") && !release.revoked ? stageForms(release, viewer) : nothing}</section>`;
}

/** The reader's zone where the script runs; other words are those of the command. */
function remarkOn(release: ReleaseLine, now: Date): Html {
  const { revoked, trusted, expiresAt, standing, stageSince, stageWords } = release;
  const isPlain = !revoked && trusted && expiresAt > now && standing === null;
  if (!isPlain || stageSince === null) return html`${releaseRemark(release, now)}`;
  return html`Since ${instant(stageSince)}${stageWords === "" ? "." : `: ${stageWords}.`}`;
}

function stageForms({ version, stage }: ReleaseLine, viewer: PageViewer): Html {
  const path = (deed: string) => `/fleet/versions/${encodeURIComponent(version)}/${deed}`;
  const id = `to-${version.replace(/[^a-z0-9]/gi, "-")}`;
  return html`<div class="actions">
<form class="inline" method="post" action="${path("stage")}">${formToken(viewer)}<label for="${id}">Offer to</label> <input
id="${id}" name="to" value="${stage === "none" ? "one" : stage === "one" ? "5%" : "all"}" maxlength="68" size="10" required
aria-describedby="stage-hint"> <button class="quiet slim">Offer</button></form>
${buttonForm(viewer, { path: path("auto"), label: "Roll out in stages" })}
${stage === "none" ? nothing : buttonForm(viewer, { path: path("hold"), label: "Hold" })}
</div>`;
}

function docksSection({ docks }: VersionsPage): Html {
  if (docks.length === 0)
    return html`<section><h2>Crawlers by release</h2>
${empty("No crawler that takes releases has connected yet.", "")}</section>`;
  const columns = [
    column<DockEntry>("Crawler", nameAndState),
    column<DockEntry>("Runs", ({ runsVersion }) => runsVersion),
    column<DockEntry>("Supervisor", ({ dockVersion }) => dockVersion),
    column<DockEntry>("Partner's policy", ({ policy }) => policy),
    column<DockEntry>("Rolled back from", returnedFrom),
  ];
  return html`<section><h2>Crawlers by release</h2>
<p class="small" id="stage-hint">“Offer to” takes one, one=NAME, a percentage such as 5%, or all.</p>
${dataTable("Crawlers by release", columns, docks)}</section>`;
}

const nameAndState = ({ name, online }: DockEntry) =>
  html`${crawlerOr(name, "")}${online ? nothing : html`<span class="small">offline</span>`}`;

function returnedFrom({ reports }: DockEntry): string {
  const returned = [...reports].filter(([, state]) => state === "returned").map(([version]) => version);
  return returned.length === 0 ? "–" : returned.join(", ");
}
