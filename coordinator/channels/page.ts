/** The page of channels: what is crawled of parts of hosts, and the form for another one. */
import { mayDo } from "#core/actor";
import type { Change } from "#core/audit";
import { howMany } from "#core/format";
import {
  actionColumn,
  buttonForm,
  column,
  dataTable,
  empty,
  numberColumn,
  titleRow,
} from "../web/components.ts";
import { askAbout, countText, instant } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { Channel } from "./channel-reads.ts";

interface ChannelsPage {
  readonly channels: readonly Channel[];
  readonly viewer: PageViewer;
  /** What was typed, and what is wrong with it. */
  readonly typed?: { readonly values: Readonly<Record<string, string>>; readonly fault: string };
}

export function channelsBody({ channels, viewer, typed }: ChannelsPage): Html {
  const mayChange = mayDo(viewer.actor, "policy-write");
  return html`${titleRow("Channels")}
<p class="lead">A channel is a host, a directory of it or a set of directories, with its own seeds, filters and depth.
What is in no channel is crawled as the <a href="/policies">scope</a> says.</p>
${typed ? html`<p class="fault" role="alert">${typed.fault}</p>` : list(channels, viewer, mayChange)}
${mayChange ? addForm(viewer, typed?.values ?? {}) : nothing}`;
}

function list(channels: readonly Channel[], viewer: PageViewer, mayChange: boolean): Html {
  if (channels.length === 0) return empty("No channels.", "Every host is crawled within the general scope.");
  const removal = actionColumn<Channel>("Change", ({ channelId }) =>
    buttonForm(viewer, { path: `/channels/${channelId}/remove`, label: `Remove no. ${channelId}` }),
  );
  return dataTable<Channel>(
    "Channels",
    [
      column("What", place, "break"),
      numberColumn("No.", ({ channelId }) => channelId),
      column("What is crawled", rules, "wide break"),
      numberColumn("Pages expected", ({ expectedPages }) =>
        expectedPages === null ? "–" : countText(expectedPages),
      ),
      column("Since", ({ createdAt }) => instant(createdAt.toISOString())),
      ...(mayChange ? [removal] : []),
    ],
    channels,
  );
}

const place = ({ host, directories }: Channel) =>
  html`${askAbout(host)}${directories.join(", ")}<span
 class="small"> <a href="${pathWith("/changes", { host })}">changes</a></span>`;

const rules = (channel: Channel) =>
  html`${ruleWords(channel)}${channel.settled ? nothing : html`<span class="small"> being applied</span>`}`;

const fields = [
  ["prefixes", "Host or directories of one host", "https://www.example.org/docs/"],
  ["seeds", "Seeds", "https://www.example.org/docs/index.html"],
  ["include", "Crawl only paths that match (* is anything, $ the end)", "/docs/*.html$"],
  ["exclude", "Skip paths that match", "/docs/old/"],
] as const;

function addForm(viewer: PageViewer, values: Readonly<Record<string, string>>): Html {
  return html`<section><h2>Add a channel</h2>
<form class="channel-form" method="post" action="/channels">${formToken(viewer)}
${fields.map(
  ([name, label, like]) =>
    html`<div><label for="channel-${name}">${label}</label><textarea id="channel-${name}" name="${name}" rows="2"
 placeholder="${like}" maxlength="8000" spellcheck="false"${name === "prefixes" ? html` required` : nothing}
>${values[name] ?? ""}</textarea></div>`,
)}
<div><label for="channel-depth">Links from a seed</label><input id="channel-depth" name="maxDepth" inputmode="numeric"
 pattern="\\d{0,4}" value="${values.maxDepth ?? ""}" placeholder="as the scope says"></div>
<button>Add channel</button></form></section>`;
}

export function channelsCsv(channels: readonly Channel[]): CsvTable {
  return {
    columns: [
      "channel",
      "host",
      "place",
      "directories",
      "seeds",
      "include",
      "exclude",
      "max_depth",
      "expected_pages",
      "created_at",
    ],
    rows: channels.map((channel) => {
      const { channelId, host, directories, seeds, include, exclude, maxDepth, expectedPages } =
        toldChannel(channel);
      const lists = [directories, seeds, include, exclude].map((texts) => texts.join(" "));
      const created = channel.createdAt.toISOString();
      return [channelId, host, placeWords(channel), ...lists, maxDepth, expectedPages, created];
    }),
  };
}

interface ToldChannel extends Omit<Channel, "include" | "exclude"> {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

export function toldChannel(channel: Channel): ToldChannel {
  const textsOf = (patterns: Channel["include"]) => patterns.map(({ text }) => text);
  return { ...channel, include: textsOf(channel.include), exclude: textsOf(channel.exclude) };
}

/** `a.example/docs/, /news/`. */
export function placeWords({ host, directories }: Pick<Channel, "host" | "directories">): string {
  return `${host}${directories.join(", ")}`;
}

/** What is crawled of it: `2 seeds, 3 links deep, with /*.html$, without /old/`. */
function ruleWords({ seeds, maxDepth, include, exclude }: Channel): string {
  const listed = (word: string, patterns: Channel["include"]) =>
    patterns.length === 0 ? [] : [`${word} ${patterns.map(({ text }) => text).join(" ")}`];
  const parts = [
    ...(seeds.length === 0 ? [] : [howMany(seeds.length, "seed")]),
    ...(maxDepth === null ? [] : [`${howMany(maxDepth, "link")} deep`]),
    ...listed("with", include),
    ...listed("without", exclude),
  ];
  return parts.length === 0 ? "everything" : parts.join(", ");
}

/** For the audit log. */
export function channelChange(channel: Channel, action: "channel-added" | "channel-removed"): Change {
  const told = toldChannel(channel);
  const { directories, seeds, include, exclude, maxDepth } = told;
  const rules = { directories, seeds, include, exclude, maxDepth };
  const place = placeWords(channel);
  const isNew = action === "channel-added";
  const words = isNew
    ? `Of ${place} is crawled: ${ruleWords(channel)} (channel ${channel.channelId}).`
    : `${place} is crawled as the scope says (channel ${channel.channelId} was removed).`;
  return { action, target: place, words, ...(isNew ? { after: rules } : { before: rules }) };
}
