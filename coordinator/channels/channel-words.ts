/** Channels in words, and as JSON: patterns as they are typed. */
import type { Change } from "#core/audit";
import { howMany } from "#core/format";
import type { Channel } from "./channel-ports.ts";

export interface ToldChannel extends Omit<Channel, "include" | "exclude"> {
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
export function ruleWords({ seeds, maxDepth, include, exclude }: Channel): string {
  const listed = (word: string, patterns: Channel["include"]) =>
    patterns.length === 0 ? [] : [`${word} ${patterns.map(({ text }) => text).join(" ")}`];
  const parts = [
    ...(seeds.length === 0 ? [] : [howMany(seeds.length, "seed")]),
    ...(maxDepth === null ? [] : [`${howMany(maxDepth, "link")} deep`]),
    ...listed("with", include),
    ...listed("without", exclude),
  ];
  return parts.length === 0 ? "all of it" : parts.join(", ");
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
    : `${place} is crawled as the scope says (channel ${channel.channelId} is no more).`;
  return { action, target: place, words, ...(isNew ? { after: rules } : { before: rules }) };
}
