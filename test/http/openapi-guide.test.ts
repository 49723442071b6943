import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signCallback } from '../../actors/callbacks/signature.ts';
import { AUDIO_ENCODINGS } from '../../http/schemas/tts.ts';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';
import type { HangupCause } from '../../machines/events.ts';
import { PLAN_LIMITS } from '../../storage/limits/limits.ts';
import { ROOT } from '../root.ts';

const withoutMark = (line: string) => line.replace('#', '');
let folder: string;
let guide: string;
let telephonyGuide: string;
/** The reference pages and the guides of all users. */
let pages: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-guide-'));
  guide = await readFile(join(ROOT, 'docs/api.md'), 'utf8');
  telephonyGuide = await readFile(join(ROOT, 'docs/guide-telephony.md'), 'utf8');
  const others = ['calls', 'guide-live-transcription', 'guide-api-client'];
  const texts = await Promise.all(others.map((page) => readFile(join(ROOT, `docs/${page}.md`), 'utf8')));
  pages = [guide, telephonyGuide, ...texts].join('\n');
});
afterAll(() => rm(folder, { recursive: true }));

const SECRET = 'at least 16 characters, ü';
const BODY = '{"event":"call.completed","metadata":{"name":"नमस्ते"}}';

function signed(timestampS = Math.floor(Date.now() / 1000)): string {
  return signCallback({ secret: SECRET, webhookId: 'e', timestampS, rawBody: BODY })['x-qcall-signature']!;
}

function snippet(language: string): string {
  const code = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(telephonyGuide)?.[1];
  expect(code, `the ${language} snippet`).toBeDefined();
  return code!;
}

function cases(): [body: string, signature: string, secret: string, isOurs: boolean][] {
  return [
    [BODY, signed(), SECRET, true],
    [`${BODY} `, signed(), SECRET, false],
    [BODY, signed(), 'another secret of 16', false],
    [BODY, signed(1_700_000_000), SECRET, false],
    [BODY, '', SECRET, false],
    [BODY, 't=1,v1=00', SECRET, false],
  ];
}

describe('guide to the API', () => {
  it('verifies callback signatures in Node', async () => {
    const file = join(folder, 'verify.mjs');
    await writeFile(file, snippet('js'));
    const { isOurs } = await import(pathToFileURL(file).href);
    for (const [body, signature, secret, expected] of cases()) {
      expect(isOurs(Buffer.from(body), signature, secret)).toBe(expected);
    }
  });

  const hasPython = spawnSync('python3', ['--version']).status === 0;
  it.runIf(hasPython)('verifies callback signatures in Python', async () => {
    const file = join(folder, 'verify.py');
    const rows = 'import json, sys\nfor b, s, k, _ in json.load(sys.stdin): print(is_ours(b.encode(), s, k))';
    await writeFile(file, `${snippet('python')}\n${rows}\n`);
    const input = JSON.stringify(cases());
    const lines = execFileSync('python3', [file], { input, encoding: 'utf8' }).trim().split('\n');
    expect(lines).toEqual(cases().map(([, , , expected]) => (expected ? 'True' : 'False')));
  });

  it('names only operations, codes and limits that exist', async () => {
    const document = JSON.parse(await readFile(join(ROOT, 'openapi.json'), 'utf8'));
    const paths = Object.keys(document.paths).map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`));
    const named = [
      ...pages.matchAll(
        /`(?:GET |POST |PUT )?(\/(?:dialer|auth|webhooks|voices|tts|stt|memory|judge|billing)[\w/-]*)`/g,
      ),
    ].map(([, path]) => path!);
    expect(named.length).toBeGreaterThanOrEqual(5);
    expect(named.filter((path) => !paths.some((pattern) => pattern.test(path)))).toEqual([]);
    const codes = [...pages.matchAll(/`([A-Z0-9]+_[A-Z0-9_]+)`/g)].map(([, code]) => code!);
    const settings = await readFile(join(ROOT, '.env.example'), 'utf8');
    const names = settings.match(/^#?[A-Z0-9_]+(?==)/gm)!.map(withoutMark);
    const hangupCauses = ['BLIND_TRANSFER'] satisfies HangupCause[];
    const others = new Set<string>([...AUDIO_ENCODINGS, ...hangupCauses, ...names]);
    expect(codes.filter((code) => !(code in ERROR_CATALOGUE) && !others.has(code))).toEqual([]);
    for (const plan of ['free', 'starter', 'pro'] as const) {
      const { perMinute, perDay } = PLAN_LIMITS[plan];
      expect(guide.replaceAll(/ requests a minute| a day/g, '').replaceAll('\n', ' ')).toContain(
        `${plan} ${perMinute} and ${perDay.toLocaleString('en')}`,
      );
    }
  });
});
