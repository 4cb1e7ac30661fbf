// Records which files Node loads as modules from now on, required packages included.
import { createRequire, register } from "node:module";
import { fileURLToPath } from "node:url";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";

const hooks = `
  let port;
  export function initialize(given) { port = given; }
  export async function load(url, context, next) { port.postMessage(url); return await next(url, context); }`;

/** Returns a function that lists them, each once. */
export function watchLoading() {
  const { port1, port2 } = new MessageChannel();
  register(`data:text/javascript,${encodeURIComponent(hooks)}`, import.meta.url, {
    data: port2,
    transferList: [port2],
  });
  const loaded = new Set();
  return () => {
    for (let one = receiveMessageOnPort(port1); one !== undefined; one = receiveMessageOnPort(port1))
      if (one.message.startsWith("file:")) loaded.add(fileURLToPath(one.message.split("?")[0]));
    const required = Object.keys(createRequire(import.meta.url).cache);
    return [...new Set([...loaded, ...required])];
  };
}
