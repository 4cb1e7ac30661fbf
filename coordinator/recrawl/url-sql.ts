/**
 * The row of table recrawl_host that holds for a URL, in SQL: a channel's own once a plan has looked at it, until then, and
 * for what lies in no channel, that of the rest of its host (0).
 */
import { channelOfUrl } from "../channels/channel-of-url.ts";

/** `u`: a row with `host_hash` and `url`. Hosts without channels cost one look-up. */
export const plannedChannel = (u: string) => `case
  when exists (select from channel where host_hash = ${u}.host_hash) then coalesce((
    select own.channel_id
    from recrawl_host own
    where own.host_hash = ${u}.host_hash and own.channel_id = ${channelOfUrl(u)}
  ), 0)
  else 0
end`;
