import type { CountTokens } from '../tokens.ts';
import { cutBlock, tokensIn } from './cut-text.ts';
import { type TextBlock, textBlocks } from './text-blocks.ts';

/** A part of a text that recall finds by itself. */
export interface Chunk {
  text: string;
  /** Headings of the enclosing sections, outermost first, without those at the start of the chunk's own text. */
  headings: readonly string[];
  /** Tokens of `text` alone. An upper bound. */
  tokens: number;
}

export interface ChunkOptions {
  countTokens: CountTokens;
  /** Size at which a chunk is full. Default 320. */
  targetTokens?: number;
  /** Limit of a block that stays whole. Default 480. */
  mostTokens?: number;
  /** How much a piece repeats of the one before, where running text had to be cut. Default 48. */
  overlapTokens?: number;
}

/** Shorter sections share a chunk with what follows. */
const LEAST_TOKENS = 64;

/**
 * Divides a text along its structure. The chunks contain every word in order, and repeat some only where a block was
 * too long to stay whole. A heading stays with the text below it. Undefined marks a point where the caller may let
 * other work run.
 */
export function* chunksOf(text: string, options: ChunkOptions): Generator<Chunk | undefined, void> {
  const { countTokens, targetTokens = 320, mostTokens = 480, overlapTokens = 48 } = options;
  /** Headings of the open sections. */
  const open: { level: number; label: string }[] = [];
  let parts: Part[] = [];
  let tokens = 0;

  for (const block of textBlocks(text)) {
    if (block === undefined) {
      yield undefined;
      continue;
    }
    if (block.kind === 'heading') {
      if (tokens >= LEAST_TOKENS) yield* flush();
      const above = headingsAbove(block.level);
      open.push({ level: block.level, label: block.label });
      add(block, above, tokensIn(block.text, countTokens));
      if (tokens > mostTokens) yield* flush({ keepsHeadings: false });
      continue;
    }
    const above = open.map(({ label }) => label);
    const size = sizeOf(block);
    if (size <= mostTokens) {
      if (hasBody() && tokens + size > targetTokens) yield* flush();
      add(block, above, size);
      continue;
    }
    if (hasBody()) yield* flush();
    let isFirst = true;
    for (const piece of cutBlock(block, { countTokens, mostTokens: targetTokens, overlapTokens })) {
      if (piece === undefined) {
        yield undefined;
        continue;
      }
      if (!isFirst) yield* flush({ keepsHeadings: false });
      isFirst = false;
      add({ ...block, text: piece }, above, tokensIn(piece, countTokens));
    }
  }
  yield* flush({ keepsHeadings: false });

  function add(block: TextBlock, above: readonly string[], size: number): void {
    parts.push({ block, above, size });
    tokens += size + 1;
  }

  /** Trailing headings belong to the next chunk. */
  function* flush({ keepsHeadings = true } = {}): Generator<Chunk, void> {
    const last = parts.findLastIndex(({ block }) => block.kind !== 'heading');
    const kept = keepsHeadings ? parts.slice(last + 1) : [];
    const done = keepsHeadings ? parts.slice(0, last + 1) : parts;
    parts = kept;
    tokens = kept.reduce((sum, { size }) => sum + size + 1, 0);
    if (done.length > 0) yield chunkFrom(done);
  }

  function hasBody(): boolean {
    return parts.some(({ block }) => block.kind !== 'heading');
  }

  function headingsAbove(level: number): string[] {
    while (open.length > 0 && open.at(-1)!.level >= level) open.pop();
    return open.map(({ label }) => label);
  }

  function sizeOf({ text: blockText }: TextBlock): number {
    // Counting the tokens of a very long block would be slow, and it is too long anyway.
    return blockText.length > mostTokens * 16 ? Number.POSITIVE_INFINITY : tokensIn(blockText, countTokens);
  }
}

interface Part {
  block: TextBlock;
  /** Headings of the enclosing sections. */
  above: readonly string[];
  size: number;
}

function chunkFrom(parts: readonly Part[]): Chunk {
  let text = '';
  let before: TextBlock['kind'] | null = null;
  for (const { block } of parts) {
    if (before !== null) text += before === 'turn' && block.kind === 'turn' ? '\n' : '\n\n';
    text += block.text;
    before = block.kind;
  }
  const tokens = parts.reduce((sum, { size }) => sum + size + 1, -1);
  return { text, headings: parts[0]!.above, tokens };
}
