/** Of the dock's own code, which its host updates by hand; a release's manifest names the oldest dock that can run it. */
export const dockVersion = "1.0.0";
