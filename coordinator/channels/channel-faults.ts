/** What makes a channel's settings impossible, contradictory or without effect; each fault names the values. */
import { type ChannelRules, channelHolds, leftOut } from "./channel.ts";
import { patternCovers } from "./url-pattern.ts";

export interface OtherChannel extends Pick<ChannelRules, "directories"> {
  readonly channelId: number;
}

/** None: the channel can be. `others`: the host's channels that there are. */
export function channelFaults(channel: ChannelRules, others: readonly OtherChannel[]): string[] {
  return [
    ...nestedDirectories(channel),
    ...overlaps(channel, others),
    ...lostSeeds(channel),
    ...lostFilters(channel),
    ...depthFaults(channel),
  ];
}

/** A set that holds itself again: one directory within another of the same channel. */
function nestedDirectories({ directories }: ChannelRules): string[] {
  return directories.flatMap((outer, at) =>
    directories.flatMap((inner, place) =>
      place !== at && inner.startsWith(outer) && (inner !== outer || place > at)
        ? [`directories: ${outer} holds ${inner} already; name one of them`]
        : [],
    ),
  );
}

function overlaps({ directories }: ChannelRules, others: readonly OtherChannel[]): string[] {
  return others.flatMap((other) => {
    const shared = directories.flatMap((own) =>
      other.directories
        .filter((their) => own.startsWith(their) || their.startsWith(own))
        .map((their) => (own.length > their.length ? own : their)),
    );
    return shared.length === 0
      ? []
      : [
          `directories: ${shared[0]} is in channel ${other.channelId} of this host already; a URL has one channel`,
        ];
  });
}

function lostSeeds(channel: ChannelRules): string[] {
  return channel.seeds.flatMap((url) => {
    if (!channelHolds(channel, url))
      return [`seed ${url}: it is outside of the channel (${channel.directories.join(", ")})`];
    const why = leftOut(channel, { url, depth: 0 });
    return why === null ? [] : [`seed ${url}: it would never be fetched, ${why}`];
  });
}

function lostFilters({ include, exclude, directories }: ChannelRules): string[] {
  const covered = include.flatMap((wanted) => {
    const by = exclude.find((unwanted) => patternCovers(unwanted, wanted));
    return by ? [`include ${wanted.text}: exclude ${by.text} holds all of it, so nothing is left`] : [];
  });
  const empty = exclude.filter(({ pieces, anchored }) => {
    const isPrefix = !anchored && pieces.slice(1).every((piece) => piece === "");
    return isPrefix && directories.every((directory) => directory.startsWith(pieces[0]!));
  });
  const outside = include.filter(
    ({ pieces }) =>
      pieces[0] !== "" &&
      !directories.some((one) => one.startsWith(pieces[0]!) || pieces[0]!.startsWith(one)),
  );
  return [
    ...covered,
    ...empty.map(({ text }) => `exclude ${text}: it holds the whole channel, so nothing is left`),
    ...outside.map(({ text }) => `include ${text}: it is outside of the channel (${directories.join(", ")})`),
  ];
}

/** With depth 0 links are not followed: without seeds nothing is crawled, and filters of links have no effect. */
function depthFaults({ maxDepth, seeds, include }: ChannelRules): string[] {
  if (maxDepth !== 0) return [];
  return [
    ...(seeds.length === 0 ? ["max-depth 0: seeds alone are crawled then, and there is none"] : []),
    ...(include.length > 0
      ? [`max-depth 0: no link is followed then, so include ${include[0]!.text} has no effect`]
      : []),
  ];
}
