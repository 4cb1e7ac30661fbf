/** Releases: to whom each is offered and what came of it, and which crawler runs what. */
import { mayDo } from "#core/actor";
import { buttonForm, crawlerOr, empty, fleetHead } from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { type ReleaseLine, releaseRemark, stageText } from "./release-lines.ts";
import type { DockEntry } from "./release-ports.ts";

export interface VersionsPage {
  readonly releases: readonly ReleaseLine[];
  readonly docks: readonly DockEntry[];
  readonly now: Date;
}

const states = ["offered", "running", "returned", "pinned", "delayed", "refused"] as const;

export function versionsBody(page: VersionsPage, viewer: PageViewer, fault: string | null = null): Html {
  return html`${fleetHead("/fleet/versions", viewer, "Versions")}
<p class="lead">Releases are signed by <code>nearcrawl release sign</code> and published, or by the coordinator while its own key counts. Then each is offered to one crawler, to a share of them, to all; crawlers return by themselves from one that fails.</p>
${fault === null ? nothing : html`<p class="fault" role="alert">${fault}</p>`}
${
  page.releases.length === 0
    ? empty(
        "No release is published.",
        html`The coordinator makes the first one as it starts, where the crawler's bundle is beside it; or <code>nearcrawl release init</code> does.`,
      )
    : page.releases.map((release) => releaseSection(release, page.now, viewer))
}
${docksSection(page)}`;
}

function releaseSection(release: ReleaseLine, now: Date, viewer: PageViewer): Html {
  return html`<section class="release"><h2>${release.version} <span class="small">published ${instant(release.publishedAt.toISOString())}, signed until ${instant(release.expiresAt.toISOString())}</span></h2>
<p>Offered to <strong>${stageText(release)}</strong>. <span class="small">${remarkOn(release, now)}</span></p>
<ul class="shares">${states.map((state) => html`<li>${state} <strong>${countText(release.crawlers[state])}</strong></li>`)}</ul>
${mayDo(viewer.actor, "fleet-write") && !release.revoked ? stageForms(release, viewer) : nothing}</section>`;
}

/** The reader's zone where the script runs; other words are those of the command. */
function remarkOn(release: ReleaseLine, now: Date): Html {
  const { revoked, trusted, expiresAt, standing, stageSince, stageWords } = release;
  const isPlain = !revoked && trusted && expiresAt > now && standing === null;
  if (!isPlain || stageSince === null) return html`${releaseRemark(release, now)}`;
  return html`Since ${instant(stageSince.toISOString())}${stageWords === "" ? "." : `: ${stageWords}.`}`;
}

function stageForms({ version, stage }: ReleaseLine, viewer: PageViewer): Html {
  const path = (deed: string) => `/fleet/versions/${encodeURIComponent(version)}/${deed}`;
  const id = `to-${version.replace(/[^a-z0-9]/gi, "-")}`;
  return html`<div class="actions">
<form class="inline" method="post" action="${path("stage")}">${formToken(viewer)}<label for="${id}">Offer to</label> <input id="${id}" name="to" value="${stage === "none" ? "one" : stage === "one" ? "5%" : "all"}" maxlength="68" size="10" required aria-describedby="stage-hint"> <button class="quiet slim">Offer</button></form>
${buttonForm(viewer, { path: path("auto"), label: "Offer step by step" })}
${stage === "none" ? nothing : buttonForm(viewer, { path: path("hold"), label: "Hold" })}
</div>`;
}

function docksSection({ docks }: VersionsPage): Html {
  if (docks.length === 0)
    return html`<section><h2>Who runs what</h2>${empty("No crawler that takes releases has connected yet.", "")}</section>`;
  return html`<section><h2>Who runs what</h2><p class="small" id="stage-hint">“Offer to” takes one, one=NAME, a percentage such as 5%, or all.</p><div class="scroll"><table>
<thead><tr><th scope="col">Crawler</th><th scope="col">Runs</th><th scope="col">Dock</th><th scope="col">Its partner's policy</th><th scope="col">Returned from</th></tr></thead>
<tbody>${docks.map(
    (dock) =>
      html`<tr><th scope="row">${crawlerOr(dock.name, "")}${dock.online ? nothing : html`<span class="small">offline</span>`}</th><td>${dock.runsVersion}</td><td>${dock.dockVersion}</td><td>${dock.policy}</td><td>${returnedFrom(dock)}</td></tr>`,
  )}</tbody></table></div></section>`;
}

function returnedFrom({ reports }: DockEntry): string {
  const returned = [...reports].filter(([, state]) => state === "returned").map(([version]) => version);
  return returned.length === 0 ? "–" : returned.join(", ");
}
