/** The local page's style sheet: one column on a telephone, two beside each other where there is room; dark is a second set of colours. */
export const pageStyle = `
:root{color-scheme:light dark;--ground:#f6f7f6;--card:#fff;--ink:#17201f;--soft:#5a6866;--line:#dfe4e2;--accent:#0b6b66;
--track:#e6ecea;--warm:#b45309;--warm-soft:#fdf0dc;--good:#1b7f4b;--bad:#b3261e;--other:#8aa09d}
@media (prefers-color-scheme:dark){:root{--ground:#0f1514;--card:#171f1e;--ink:#e4ebe9;--soft:#94a5a2;--line:#27312f;
--accent:#4cc4b8;--track:#27312f;--warm:#f0a94b;--warm-soft:#33260f;--good:#5fd08f;--bad:#ff8a80;--other:#5d726f}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI","Noto Sans","Liberation Sans",sans-serif;
font-variant-numeric:tabular-nums}
.width{max-width:1200px;margin:0 auto;padding-inline:clamp(16px,4vw,32px)}
main{padding-block:28px 48px}
.top{background:var(--card);border-bottom:1px solid var(--line)}
.brand{display:flex;gap:9px;align-items:center;margin-block:0;padding-block:12px;font-weight:650;font-size:1.0625rem;letter-spacing:-.01em}
.brand span{font-weight:400;color:var(--soft);overflow-wrap:anywhere}
.mark{width:24px;height:24px;flex:none}
.mark path{fill:none;stroke:var(--accent);stroke-width:2.4;stroke-linecap:round}
.mark circle{fill:var(--accent)}
h1{font-size:clamp(1.375rem,1.1rem + 1.2vw,1.75rem);line-height:1.25;letter-spacing:-.015em;font-weight:600;margin:0 0 20px;
text-wrap:balance;overflow-wrap:anywhere}
.dot{display:inline-block;width:.6em;height:.6em;border-radius:50%;background:var(--other);margin-right:.4em}
.crawling .dot{background:var(--good)}.paused .dot,.draining .dot,.waiting .dot{background:var(--warm)}
.not-connected .dot{background:var(--bad)}
h2{font-size:1rem;font-weight:600;margin:0 0 12px}
.held{background:var(--warm-soft);border:1px solid var(--warm);border-radius:12px;padding:14px 18px;margin:0 0 16px}
.held h2{color:var(--warm);margin-bottom:4px}
.held ul{margin:0;padding-left:1.1em}
.cards{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));align-items:start}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;min-width:0}
.wide{grid-column:1/-1}
.limit{display:grid;grid-template-columns:1fr auto;gap:2px 12px;font-size:.9375rem}
.limit+.limit{margin-top:14px}
.limit .used{text-align:right}
.limit .note{grid-column:1/-1;color:var(--soft);font-size:.8125rem}
.limit .note.warm{color:var(--warm)}
svg.bar{grid-column:1/-1;width:100%;height:8px;display:block;border-radius:4px;background:var(--track)}
svg.bar rect{fill:var(--accent)}
.over svg.bar rect{fill:var(--warm)}
dl{margin:0;display:grid;grid-template-columns:max-content 1fr;gap:8px 18px;font-size:.9375rem}
dt{color:var(--soft)}
dd{margin:0;min-width:0;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:1fr 1fr;gap:14px;margin:0 0 16px}
@media (min-width:700px){.wide .tiles{grid-template-columns:repeat(4,1fr)}}
.tiles>div{min-width:0}
.figure{display:block;font-size:1.5rem;line-height:1.2;font-weight:600;letter-spacing:-.02em}
.tiles small,.soft{color:var(--soft);font-size:.8125rem}
.errors{list-style:none;margin:0;padding:0;font-size:.875rem}
.errors li{padding:8px 0;border-top:1px solid var(--line);overflow-wrap:anywhere}
.errors time{color:var(--soft);margin-right:.5em}
.blame{display:inline-block;border:1px solid var(--line);border-radius:999px;padding:0 .6em;font-size:.75rem;color:var(--soft);margin-right:.4em}
footer{color:var(--soft);font-size:.8125rem;margin-top:20px}
a{color:var(--accent)}
@media (max-width:480px){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:10px}}
`;
