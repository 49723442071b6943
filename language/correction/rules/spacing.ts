import { UNSPACED_SCRIPTS } from '../../../runtime/unspaced-scripts.ts';
import { isWordLike, mark, type Rule, TOKENS_PER_SLICE, type Token, token } from './token.ts';

/**
 * Fixes spaces around marks and doubled marks: no space before a comma or inside brackets, one after, and three dots
 * for two or four. In French a space before ; : ! ? stays.
 */
export function spaceMarks({ isFrench }: { isFrench: boolean }): Rule {
  return function* (tokens) {
    const out: Token[] = [];
    for (let at = 0; at < tokens.length; at++) {
      if (at % TOKENS_PER_SLICE === 0) yield;
      const here = tokens[at]!;
      const before = out.at(-1);
      if (here.kind === 'space') {
        if (isSpacedDots(tokens, at, before)) {
          out[out.length - 1] = mark('...');
          at += 3;
        } else if (!isNeedless(tokens, at, before, isFrench)) out.push(here);
        continue;
      }
      out.push(here.kind === 'mark' ? mark(single(tokens, at, before)) : here);
      if (lacksSpaceBehind(tokens, at, before)) out.push(token('space', ' '));
    }
    return out;
  };
}

function isNeedless(tokens: readonly Token[], at: number, before: Token | undefined, isFrench: boolean): boolean {
  const next = tokens[at + 1];
  if (before === undefined || before.kind === 'lead' || before.kind === 'break' || next === undefined) return false;
  if (/^[([]$/.test(before.text)) return isWordLike(next);
  if (next.kind !== 'mark') return false;
  if (next.text === ')' || next.text === ']') return isWordLike(before) || /^[.!?…]/.test(before.text);
  if (!isWordLike(before) && !/^[)\]"”’]$/.test(before.text)) return false;
  const then = tokens[at + 2];
  if (next.text.startsWith(',')) return then === undefined || then.kind !== 'mark' || then.text !== next.text;
  if (isFrench && /^[;:!?]/.test(next.text)) return false;
  if (!/^(?:[;:.]|\.{3}|[!?]+|[।،؛؟，。])$/u.test(next.text)) return false;
  if (then?.kind === 'word') return next.text === '?' && before.kind === 'word';
  return then === undefined || then.kind === 'space' || then.kind === 'break' || /^["”’)\]]$/.test(then.text);
}

/** Whether " . ." follows a full stop. */
function isSpacedDots(tokens: readonly Token[], at: number, before: Token | undefined): boolean {
  const isDot = (token: Token | undefined) => token?.kind === 'mark' && token.text === '.';
  return isDot(before) && isDot(tokens[at + 1]) && tokens[at + 2]?.kind === 'space' && isDot(tokens[at + 3]);
}

function single(tokens: readonly Token[], at: number, before: Token | undefined): string {
  const { text } = tokens[at]!;
  const next = tokens[at + 1];
  const endsWord = isWordLike(before) || /^["”’)\]]$/.test(before?.text ?? '');
  const isFollowed =
    next === undefined || next.kind === 'space' || next.kind === 'break' || /^["”’)\]]$/.test(next.text);
  if (!endsWord) return text;
  if (/^,{2,}$/.test(text)) return ',';
  if (/^;{2,}$/.test(text)) return ';';
  return /^(?:\.{2}|\.{4,})$/.test(text) && isFollowed ? '...' : text;
}

function lacksSpaceBehind(tokens: readonly Token[], at: number, before: Token | undefined): boolean {
  const { kind, text } = tokens[at]!;
  const next = tokens[at + 1];
  if (kind !== 'mark' || next?.kind !== 'word' || !SPACED.test(next.text)) return false;
  if (!isWordLike(before) && !/^["”)\]]$/.test(before?.text ?? '')) return false;
  if (/^[,;]+$/.test(text)) return true;
  if (text === '.') return before?.kind === 'word' && next.text.length > 1;
  return /^[!?]+$/.test(text) && before?.kind === 'word';
}

/** Scripts with spaces between words. */
const SPACED = new RegExp(`^(?![${UNSPACED_SCRIPTS}])\\p{L}`, 'u');
