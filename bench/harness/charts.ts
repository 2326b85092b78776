/** Charts as Vega-Lite specifications, and their drawing as SVG that is readable on light and dark ground. */

import { loadPackage } from "./packages.ts";
import type { Results } from "./results.ts";
import { FLOOR, type Group, groupsOf, OURS, type Summary } from "./summary.ts";

/** Of middle lightness, for both grounds, and told apart by shape as well. */
const LOOKS: Readonly<Record<string, { readonly color: string; readonly shape: string }>> = {
  "pipegres": { color: "#e8590c", shape: "diamond" },
  "pg": { color: "#3b82f6", shape: "circle" },
  "postgres": { color: "#0d9488", shape: "square" },
  "postgrejs": { color: "#a855f7", shape: "triangle-up" },
  "bun.sql": { color: "#db2777", shape: "triangle-down" },
  "pg-native": { color: "#ca8a04", shape: "triangle-right" },
  "floor": { color: "#8b949e", shape: "cross" },
};

/** A specification and the name of its file. */
export interface Chart {
  readonly name: string;
  readonly title: string;
  readonly spec: Record<string, unknown>;
}

/** Client CPU time per operation, as multiples of ours: one chart for each runtime. */
export function scenarioCharts(results: Results): Chart[] {
  const groups = groupsOf(results);
  const runtimes = [...new Set(groups.map(({ runtime }) => runtime))];
  return runtimes.flatMap((runtime) => {
    const own = groups.filter((group) => group.runtime === runtime);
    return [OURS, FLOOR].map((base) => dotChart(runtime, base, own)).filter((chart) => chart !== undefined);
  });
}

function dotChart(runtime: string, base: string, groups: readonly Group[]): Chart | undefined {
  const pick = ({ cpuOverOurs, cpuOverFloor }: Summary) => base === OURS ? cpuOverOurs : cpuOverFloor;
  const points = groups.flatMap(({ scenario, summaries }) =>
    summaries.flatMap((summary) => {
      const ratio = pick(summary);
      const { driver } = summary.measurement;
      return ratio === undefined ? [] : [{ scenario, driver, ...ratio }];
    })
  );
  if (points.length === 0) return undefined;
  const title = `Client CPU time per operation on ${runtime}, as a multiple of ${
    base === OURS ? "pipegres" : "the bare socket"
  }`;
  const x = {
    type: "quantitative",
    scale: { type: "log", nice: false, padding: 12 },
    title: `times ${base} (logarithmic; less is better)`,
  };
  const y = { field: "scenario", type: "nominal", sort: null, title: null };
  const yOffset = { field: "driver", type: "nominal", sort: driversOf(points) };
  const color = colorOf(points);
  return {
    name: `${runtime}-cpu-over-${base}`,
    title,
    spec: {
      ...common(title),
      width: 620,
      height: { step: 8, for: "offset" },
      data: { values: points },
      layer: [
        {
          mark: { type: "rule", color: "#8b949e", strokeDash: [4, 3] },
          data: { values: [{ one: 1 }] },
          encoding: { x: { ...x, field: "one" } },
        },
        {
          mark: { type: "rule", strokeWidth: 1.5, opacity: 0.6 },
          encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y, yOffset, color },
        },
        {
          mark: { type: "point", filled: true, size: 55, opacity: 0.95 },
          encoding: { x: { ...x, field: "value" }, y, yOffset, color, shape: shapeOf(points) },
        },
      ],
    },
  };
}

/** How cost grows with the point of each scale scenario. */
export function scaleCharts(results: Results): Chart[] {
  const groups = groupsOf(results);
  return results.scenarios.map(({ name, title, unit }) => {
    const points = groups.filter(({ scenario }) => scenario === name).flatMap((
      { point, runtime, summaries },
    ) =>
      summaries.flatMap(({ cpu, p50, measurement: { driver } }) => [
        { point, runtime, driver, figure: "wall time", value: p50 / 1000 },
        { point, runtime, driver, figure: "client CPU time", value: cpu / 1000 },
      ])
    );
    const isLog = points.every(({ point }) => point > 0);
    return {
      name: `scale-${name.replace(/\W+/g, "-")}`,
      title,
      spec: {
        ...common(title),
        data: { values: points },
        facet: { row: { field: "figure", title: null }, column: { field: "runtime", title: null } },
        spec: {
          width: 230,
          height: 180,
          mark: { type: "line", point: { filled: true, size: 40 } },
          encoding: {
            x: {
              field: "point",
              type: "quantitative",
              scale: { type: isLog ? "log" : "linear" },
              title: unit,
            },
            y: {
              field: "value",
              type: "quantitative",
              scale: { type: "log" },
              axis: { tickCount: 6 },
              title: "ms (logarithmic)",
            },
            color: colorOf(points),
            shape: shapeOf(points),
          },
        },
      },
    };
  });
}

function common(title: string): Record<string, unknown> {
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    title: { text: title, anchor: "start", fontSize: 14 },
    background: "transparent",
    padding: 8,
    config: {
      font: "system-ui, sans-serif",
      view: { stroke: null },
      axis: {
        labelFontSize: 12,
        titleFontSize: 12,
        gridColor: "#8b949e",
        gridOpacity: 0.18,
        domainColor: "#8b949e",
      },
      legend: { labelFontSize: 12, title: null, orient: "right", symbolSize: 80, symbolOpacity: 1 },
    },
  };
}

function driversOf(points: readonly { readonly driver: string }[]): string[] {
  return Object.keys(LOOKS).filter((name) => points.some(({ driver }) => driver === name));
}

function colorOf(points: readonly { readonly driver: string }[]) {
  const domain = driversOf(points);
  return {
    field: "driver",
    type: "nominal",
    scale: { domain, range: domain.map((name) => LOOKS[name]!.color) },
    title: null,
  };
}

function shapeOf(points: readonly { readonly driver: string }[]) {
  const domain = driversOf(points);
  return {
    field: "driver",
    type: "nominal",
    scale: { domain, range: domain.map((name) => LOOKS[name]!.shape) },
    title: null,
  };
}

interface Vega {
  parse(spec: unknown): unknown;
  View: new (runtime: unknown, options: unknown) => { toSVG(): Promise<string>; finalize(): void };
}

interface VegaLite {
  compile(spec: unknown): { readonly spec: unknown };
}

/** Draws a chart. */
export async function drawSvg(chart: Chart): Promise<string> {
  const [{ parse, View }, { compile }] = [
    await loadPackage<Vega>("vega"),
    await loadPackage<VegaLite>("vega-lite"),
  ];
  const view = new View(parse(compile(chart.spec).spec), { renderer: "none" });
  try {
    return withThemes(await view.toSVG(), chart.title);
  } finally {
    view.finalize();
  }
}

/** Text follows the reader's colour scheme; a style goes before the attributes that Vega writes. */
export function withThemes(svg: string, title: string): string {
  const style = "<style>text{fill:#24292f}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>";
  const escaped = title.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return svg.replace(/<svg [^>]*>/, (tag) => `${tag}<title>${escaped}</title>${style}`);
}
