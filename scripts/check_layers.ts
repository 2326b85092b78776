/**
 * The house's rules as a plugin of `deno lint`, which deno.json names: who may import whom, who may name a runtime,
 * and which folders do no I/O.
 *
 * deno run -A scripts/check_layers.ts    checks src/ and mod.ts, and prints which folder imports which
 */

import { fileURLToPath } from "node:url";
import { dirname, join, relative } from "node:path";

const ROOT: string = fileURLToPath(new URL("..", import.meta.url));

/** A file imports its own folder or a strictly lower rank. */
const RANKS: Readonly<Record<string, number>> = {
  "src": 0,
  "src/wire": 1,
  "src/transport": 1,
  "src/auth": 1,
  "src/engine": 2,
  "src/codecs": 2,
  "src/connection": 3,
  "src/pool": 4,
  "src/client": 5,
  "mod.ts": 6,
};

/** Sockets are in transport; the environment and files are read in connection. */
const RUNTIME_FOLDERS: readonly string[] = ["src/transport", "src/connection"];
const RUNTIME_NAMES: ReadonlySet<string> = new Set(["Deno", "Bun", "process", "Buffer", "global", "require"]);

const SANS_IO_FOLDERS: readonly string[] = ["src/wire", "src/codecs", "src/engine"];
const SANS_IO_FILES: readonly string[] = ["src/pool/pool_state.ts"];
const IO_NAMES: ReadonlySet<string> = new Set([
  ...["Promise", "PromiseLike", "queueMicrotask", "performance", "crypto", "fetch"],
  ...["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval"],
]);

type Node = Deno.lint.Node;
type RuleContext = Deno.lint.RuleContext;
type LintVisitor = Deno.lint.LintVisitor;

/** The folder that a file of the house belongs to, or undefined for tests, scripts and what is outside. */
function layerOf(path: string): string | undefined {
  const inside = relative(ROOT, path);
  if (inside === "mod.ts") return inside;
  return inside.startsWith("src/") ? dirname(inside) : undefined;
}

function onSpecifiers(visit: (node: Node, specifier: string) => void): LintVisitor {
  const visitSource = (node: Node & { source?: unknown }) => {
    const source = node.source as { type: string; value?: unknown } | null | undefined;
    if (source?.type === "Literal" && typeof source.value === "string") visit(node, source.value);
  };
  return {
    ImportDeclaration: visitSource,
    ExportNamedDeclaration: visitSource,
    ExportAllDeclaration: visitSource,
    ImportExpression: visitSource,
    TSImportType(node) {
      const { literal } = node.argument as unknown as { literal?: { value: unknown } };
      if (typeof literal?.value === "string") visit(node, literal.value);
    },
  };
}

function checkImports(context: RuleContext): LintVisitor {
  const layer = layerOf(context.filename);
  return onSpecifiers((node, specifier) => {
    if (!specifier.startsWith(".")) return;
    const target = layerOf(join(dirname(context.filename), specifier));
    const problem = importProblem(layer, target);
    if (problem) context.report({ node, message: problem });
  });
}

function importProblem(layer: string | undefined, target: string | undefined): string | undefined {
  if (layer === undefined) return undefined;
  if (target === undefined) return `${layer} imports what is not part of the package`;
  if (target === layer) return undefined;
  const [own, other] = [RANKS[layer], RANKS[target]];
  if (own === undefined) return `The folder ${layer} has no rank in scripts/check_layers.ts`;
  if (other === undefined) return `The folder ${target} has no rank in scripts/check_layers.ts`;
  if (other < own) return undefined;
  return `${layer} (rank ${own}) imports ${target} (rank ${other}): only its own folder and lower ranks are allowed`;
}

/** Names that stand for themselves: not `a.process`, not `{ process: 1 }`. */
function onFreeNames(names: ReadonlySet<string>, visit: (node: Node, name: string) => void): LintVisitor {
  return {
    Identifier(node) {
      if (!names.has(node.name)) return;
      const parent = node.parent as unknown as Record<string, unknown> & { type: string };
      const isMember = parent.type === "MemberExpression" && parent["property"] === node &&
        !parent["computed"];
      const isKey = "key" in parent && parent["key"] === node && !parent["computed"] && !parent["shorthand"];
      if (!isMember && !isKey) visit(node, node.name);
    },
    MemberExpression(node) {
      if (node.object.type !== "Identifier" || node.object.name !== "globalThis") return;
      if (node.property.type === "Identifier" && names.has(node.property.name)) {
        visit(node, node.property.name);
      }
    },
  };
}

function checkRuntimeNames(context: RuleContext): LintVisitor {
  const layer = layerOf(context.filename);
  if (layer === undefined || RUNTIME_FOLDERS.includes(layer)) return {};
  const report = (node: Node, name: string) =>
    context.report({
      node,
      message: `${layer} names a runtime (${name}): only ${RUNTIME_FOLDERS.join(" and ")} may`,
    });
  return {
    ...onFreeNames(RUNTIME_NAMES, report),
    ...onSpecifiers((node, specifier) => {
      if (!specifier.startsWith(".")) report(node, specifier);
    }),
  };
}

function checkSansIo(context: RuleContext): LintVisitor {
  const layer = layerOf(context.filename);
  const file = relative(ROOT, context.filename);
  if (layer === undefined || !SANS_IO_FOLDERS.includes(layer) && !SANS_IO_FILES.includes(file)) return {};
  const report = (node: Node, name: string) =>
    context.report({ node, message: `${layer} does no I/O and knows no time, but uses ${name}` });
  const visitFunction = (node: Node & { async: boolean }) => {
    if (node.async) report(node, "async");
  };
  return {
    ...onFreeNames(IO_NAMES, report),
    FunctionDeclaration: visitFunction,
    FunctionExpression: visitFunction,
    ArrowFunctionExpression: visitFunction,
    AwaitExpression: (node) => report(node, "await"),
    'MemberExpression[object.name="Date"][property.name="now"]': (node: Node) => report(node, "Date.now"),
    'MemberExpression[object.name="Math"][property.name="random"]': (node: Node) =>
      report(node, "Math.random"),
    NewExpression(node) {
      const isDate = node.callee.type === "Identifier" && node.callee.name === "Date";
      if (isDate && node.arguments.length === 0) report(node, "the current time");
    },
  };
}

function checkTopLevelAwait(context: RuleContext): LintVisitor {
  if (layerOf(context.filename) === undefined) return {};
  const visit = (node: Node) => {
    const inFunction = context.sourceCode.getAncestors(node).some((ancestor) =>
      /Function/.test(ancestor.type)
    );
    if (!inFunction) {
      context.report({ node, message: "A module that awaits while it loads cannot be required" });
    }
  };
  return { AwaitExpression: visit, "ForOfStatement[await=true]": visit };
}

/** The rules, for `deno lint`. */
const plugin: Deno.lint.Plugin = {
  name: "layers",
  rules: {
    "imports": { create: checkImports },
    "runtime-names": { create: checkRuntimeNames },
    "sans-io": { create: checkSansIo },
    "top-level-await": { create: checkTopLevelAwait },
  },
};

export default plugin;

async function printImports(): Promise<void> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", join(ROOT, "mod.ts")],
    cwd: ROOT,
    stderr: "inherit",
  }).output();
  const graph: { modules: { local?: string; dependencies?: { code?: Edge; type?: Edge }[] }[] } = JSON.parse(
    new TextDecoder().decode(stdout),
  );
  const edges = new Map<string, Set<string>>();
  for (const { local, dependencies } of graph.modules) {
    const from = local && layerOf(local);
    if (!from) continue;
    for (const { code, type } of dependencies ?? []) {
      const url = (code ?? type)?.specifier;
      const to = url?.startsWith("file:") ? layerOf(fileURLToPath(url)) : undefined;
      if (to && to !== from) edges.set(from, (edges.get(from) ?? new Set()).add(to));
    }
  }
  for (const folder of Object.keys(RANKS).reverse()) {
    const targets = [...edges.get(folder) ?? []].sort((a, b) => RANKS[b]! - RANKS[a]!);
    console.log(`${RANKS[folder]}  ${folder.padEnd(14)}  ${targets.join(", ")}`);
  }
}

interface Edge {
  readonly specifier?: string;
}

if (import.meta.main) {
  const status = await new Deno.Command(Deno.execPath(), { args: ["lint", "src", "mod.ts"], cwd: ROOT })
    .spawn().status;
  if (status.success) await printImports();
  Deno.exitCode = status.code;
}
