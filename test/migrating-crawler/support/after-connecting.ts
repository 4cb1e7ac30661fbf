/** Lets a test keep the event loop from noticing that a connection has come about. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";

const channel = "net.client.socket";

/** Does this as soon as any socket has asked for its connection, before the loop looks at sockets again. Returns how to end that. */
export function afterConnecting(act: () => void): () => void {
  // A socket asks for its connection in the tick after it was made.
  const onSocket = () => process.nextTick(() => process.nextTick(act));
  subscribe(channel, onSocket);
  return () => void unsubscribe(channel, onSocket);
}
