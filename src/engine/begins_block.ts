/** Looks at the beginning of a statement. */

const BEGIN = /^(?:begin|start)\b/i;

/**
 * Whether a statement opens a transaction block: BEGIN or START TRANSACTION behind white space, comments (which nest in
 * PostgreSQL) and empty statements.
 */
export function beginsBlock(text: string): boolean {
  if (text === lastHarmless) return false;
  if (opens(text)) return true;
  lastHarmless = text;
  return false;
}

// Queries come in bursts of one text.
let lastHarmless = "";

/** Whether a statement is COPY, behind the same. */
export function startsCopy(text: string): boolean {
  return /^copy\b/i.test(text.slice(skipToWord(text)));
}

function opens(text: string): boolean {
  const at = skipToWord(text);
  return BEGIN.test(text.slice(at, at + 6));
}

/** Where the first word is, behind white space, comments and empty statements. */
function skipToWord(text: string): number {
  let at = 0;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0x3b /* ; */) at++;
    else if (text.startsWith("--", at)) at = endOfLine(text, at);
    else if (text.startsWith("/*", at)) at = endOfComment(text, at);
    else return at;
  }
}

function endOfLine(text: string, from: number): number {
  const end = text.slice(from).search(/[\n\r]/);
  return end < 0 ? text.length : from + end;
}

function endOfComment(text: string, from: number): number {
  const edges = /\/\*|\*\//g;
  edges.lastIndex = from;
  let depth = 0;
  for (let edge = edges.exec(text); edge !== null; edge = edges.exec(text)) {
    depth += edge[0] === "/*" ? 1 : -1;
    if (depth === 0) return edges.lastIndex;
  }
  return text.length;
}
