/** Channels as they are kept: see channels/channel. */
import type { ChannelRules } from "./channel.ts";

export interface Channel extends ChannelRules {
  readonly channelId: number;
  readonly createdAt: Date;
  /** Pages that the index has of it, at the last count; null: not counted yet. */
  readonly expectedPages: number | null;
  /** False: URLs that were in the frontier before it are still being brought in line. */
  readonly settled: boolean;
}

export interface ChannelStore {
  /** By host and number; of one host where it is named. */
  list(host?: string): Promise<readonly Channel[]>;
  /** The channel, or what makes it impossible beside those that there are. */
  add(rules: ChannelRules, now: Date): Promise<Channel | readonly string[]>;
  /** Null: there is none of this number. What it left out is due again. */
  remove(channelId: number, now: Date): Promise<Channel | null>;
  /** Brings a batch of the frontier's URLs in line with channels that are new; gives how many URLs changed. */
  settle(now: Date): Promise<number>;
}
