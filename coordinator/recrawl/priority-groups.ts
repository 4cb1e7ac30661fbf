/**
 * Priority groups of channels that are recrawled at one interval each, and the records on which the strategies IIR
 * and ICR decide (Xu et al., "Scale-adaptable Recrawl Strategies for DHT-based Distributed Web Crawling System",
 * NPC 2010, section 3.1; shared by iterated-interval.ts and iterated-capacity.ts).
 *
 * The paper calls the most urgent group rank 0 in section 3 and rank 4 in section 4. Here, as in its arrays, lists of
 * groups begin with the most urgent one, which has the shortest interval. Everything is in seconds, but any unit does.
 */

/** What a manager remembers of one channel, which is a host or a part of one, since the last reassignment. */
export interface ChannelRecord {
  /** Mean gap between its updates; a gap belongs to the update that ends it. Null: no gap ended since. */
  readonly meanGapSeconds: number | null;
  /** Its hInterval at the last reassignment; null: it never had one. */
  readonly earlierGapSeconds: number | null;
  /** hSubCount: recrawl tasks submitted. */
  readonly submitted: number;
  /** hSucCount: updates, that is tasks that succeeded. */
  readonly updates: number;
  /** Mean download time of its updates, older ones too; null: it never had one. */
  readonly downloadSeconds: number | null;
}

/** The sums over a group that a reassignment needs; a database can make them as well as `groupRecord`. */
export interface GroupRecord {
  readonly channels: number;
  /** Mean of the channels' hIntervals (see `hInterval`); null: no channel. */
  readonly hIntervalSeconds: number | null;
  /** Sum of hSubCount. */
  readonly submitted: number;
  /** Sum of hSucCount. */
  readonly updates: number;
  /** Sum of the channels' mean download times, of those that have one: the sum over PGP(k) in equation 4. */
  readonly downloadSeconds: number;
  /** Sum of download time by hInterval of the same channels: the group's part of `history(Σ λ·t)`, in task threads. */
  readonly busyThreads: number;
}

export interface Reassignment {
  /** Most urgent group first. */
  readonly intervalSeconds: readonly number[];
  /** `LastSuccessRate` for the next reassignment. */
  readonly successRates: readonly number[];
}

/** Updates of a channel that the trigger waits for: "more than 5". */
const updatesWaitedFor = 5;

/**
 * A channel's hInterval. The paper doesn't say what it is when a channel has no update since the last reassignment,
 * which is usual in groups whose interval is longer than the time between two: the last known one stays, as a variable
 * does that nobody sets; a channel that never had one counts with the interval in force. Not the time since its
 * last update: a single channel that can't be downloaded at all would lengthen its group's interval for ever.
 */
export function hInterval(channel: ChannelRecord, intervalSeconds: number): number {
  return channel.meanGapSeconds ?? channel.earlierGapSeconds ?? intervalSeconds;
}

/** `intervalSeconds`: the group's interval that is in force. */
export function groupRecord(channels: Iterable<ChannelRecord>, intervalSeconds: number): GroupRecord {
  const sums = { channels: 0, gaps: 0, submitted: 0, updates: 0, downloadSeconds: 0, busyThreads: 0 };
  for (const channel of channels) {
    const gap = hInterval(channel, intervalSeconds);
    sums.channels += 1;
    sums.gaps += gap;
    sums.submitted += channel.submitted;
    sums.updates += channel.updates;
    sums.downloadSeconds += channel.downloadSeconds ?? 0;
    sums.busyThreads += gap > 0 ? (channel.downloadSeconds ?? 0) / gap : 0;
  }
  const { gaps, ...rest } = sums;
  return { ...rest, hIntervalSeconds: sums.channels > 0 ? gaps / sums.channels : null };
}

/**
 * The trigger of section 3.1: half the channels of the most urgent group have had more than five updates since the
 * last reassignment. A group without channels never triggers: give the most urgent group that has some.
 */
export function isReassignmentDue(channels: number, channelsWithEnoughUpdates: number): boolean {
  return channels > 0 && channelsWithEnoughUpdates * 2 >= channels;
}

/** Whether a channel counts for the trigger. */
export function hasEnoughUpdates(updates: number): boolean {
  return updates > updatesWaitedFor;
}
