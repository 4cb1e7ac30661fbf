/** Delays the event loop's notice of an established connection. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";

const channel = "net.client.socket";

/**
 * Runs `act` after any socket has requested its connection, before the loop checks sockets again. Returns a function
 * that stops this.
 */
export function afterConnecting(act: () => void): () => void {
  // A socket requests its connection one tick after it was created.
  const onSocket = () => process.nextTick(() => process.nextTick(act));
  subscribe(channel, onSocket);
  return () => void unsubscribe(channel, onSocket);
}
