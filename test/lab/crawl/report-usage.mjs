// Preloaded into every process that the crawl benchmark measures: answers over the IPC channel what the process
// has used so far (CPU of all its threads, memory now and at its peak).

process.on("message", async (message) => {
  if (message?.type === "usage") {
    const { user, system } = process.cpuUsage();
    const { maxRSS } = process.resourceUsage();
    process.send({
      type: "usage",
      cpuMs: (user + system) / 1000,
      peakBytes: maxRSS * 1024,
    });
  }
});
// The benchmark is gone: nobody else would end this process.
process.once("disconnect", () => process.exit());
