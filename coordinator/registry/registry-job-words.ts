/** What was asked for, as pages, the audit log and the command say it. */
import type { FilesPlace, RegistryOrder } from "./registry-job-ports.ts";

export function orderWords(order: RegistryOrder): string {
  switch (order.type) {
    case "fetch":
      return order.acceptSmaller ? "Fetch, much smaller files too" : "Fetch";
    case "plan":
      return `Plan ${placeWords(order.files)}`;
    case "apply":
      return `Apply plan ${order.planId}`;
    case "rollback":
      return `Roll back generation ${order.generation}${order.toEmpty ? ", to an empty tree" : ""}`;
    case "rollforward":
      return `Put generation ${order.generation} in force again`;
  }
}

function placeWords(files: FilesPlace): string {
  if (files.from === "cache") return "what was fetched";
  return files.name === "" ? "the folder of files" : `the folder ${files.name}`;
}
