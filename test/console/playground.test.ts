import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { wavHeader } from '../../media/wav.ts';
import { untilTruthy } from '../eventually.ts';
import { pathOf } from '../peers/programs.ts';
import { API_KEY, cleanUp, fund } from '../process/ready-server.ts';
import { spokenUtterances } from '../speech/spoken.ts';
import {
  type ConsoleFixture,
  canBrowse,
  errorsOf,
  expectAccessible,
  expectFits,
  HOSTILE,
  isPwned,
  picture,
  startConsole,
} from './console-fixture.ts';

/** The built-in recognizer understands these of "go forward ten meters". */
const UNDERSTOOD = /go forward/;
/** On a busy machine it is slower than the speech, misses some of it, and catches up after the stop. */
const BACKLOG_MS = 150_000;

let folder: string;
let console: ConsoleFixture;
let page: Page;

describe.skipIf(!canBrowse)('the playground', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tandem-playground-'));
    await writeFile(join(folder, 'speech.wav'), wavOf(goForward()));
    await writeFile(join(folder, 'speech.raw'), new Uint8Array(goForward().buffer));
    console = await startConsole(
      { STT_ENGINE: 'pocketsphinx', TTS_ENGINE: 'espeak-ng' },
      { microphone: join(folder, 'speech.wav') },
    );
    await fund(console.sql, console.workspaceId);
    page = await console.signedIn();
  });
  afterAll(async () => {
    await cleanUp();
    await rm(folder, { recursive: true, force: true });
  });

  describe('transcription', () => {
    it(
      'shows what the microphone hears, its latency, and the cost after a stop',
      async () => {
        await open('');
        await picture(page, 'playground-live-empty');
        await expectGood();
        await page.getByRole('button', { name: 'Start' }).click();
        await page.getByText(UNDERSTOOD).first().waitFor({ timeout: BACKLOG_MS });
        await page.locator('[title*="Confidence"]').first().waitFor({ timeout: BACKLOG_MS });
        await picture(page, 'playground-live');
        await expectAccessible(page);
        await page.getByText('Final after').waitFor({ timeout: BACKLOG_MS });
        await page.getByRole('button', { name: 'Stop' }).click();
        await page.getByText('Cost', { exact: true }).waitFor({ timeout: BACKLOG_MS });
        await page.getByText('Ended').waitFor();
        await expectGood();
      },
      3 * BACKLOG_MS,
    );

    it('sends mu-law too', async () => {
      await open('');
      await page.getByRole('combobox', { name: 'Audio' }).click();
      await page.getByRole('option', { name: /mu-law/ }).click();
      await page.getByRole('button', { name: 'Start' }).click();
      await page.locator('[title*="Confidence"]').first().waitFor();
      await page.getByText(UNDERSTOOD).first().waitFor();
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByText('Ended').waitFor();
    });

    it('says what to do when the microphone is blocked', async () => {
      const other = await console.signedIn();
      await other.addInitScript(`navigator.mediaDevices.getUserMedia = () =>
        Promise.reject(new DOMException('no', 'NotAllowedError'))`);
      await open('', other);
      await other.getByRole('button', { name: 'Start' }).click();
      await other.getByText('The microphone is blocked').waitFor();
      await other.getByText(/set Microphone to Allow/).waitFor();
      await picture(other, 'playground-live-denied');
      await expectGood(other);
      await other.context().close();
    });

    it('transcribes a file, and shows its name as text', async () => {
      await open('?source=file');
      const buffer = await readFile(join(folder, 'speech.wav'));
      const file = { name: `${HOSTILE}.wav`, mimeType: 'audio/wav', buffer };
      await page.locator('input[type=file]').setInputFiles(file);
      await page.getByText(file.name).first().waitFor();
      await page.getByRole('button', { name: 'Transcribe' }).click();
      await page.getByText(UNDERSTOOD).waitFor();
      await page.getByText('pocketsphinx').first().waitFor();
      await picture(page, 'playground-file');
      await expectGood();
      await expectHarmless();
    });

    it('leads to the wallet when it is empty', async () => {
      await page.route('**/stt?*', (route) =>
        route.fulfill({ status: 402, json: { success: false, code: 'INSUFFICIENT_CREDITS', message: 'No money.' } }),
      );
      await page.getByRole('button', { name: 'Transcribe' }).click();
      await page.getByRole('link', { name: 'Open the wallet' }).waitFor();
      await page.unroute('**/stt?*');
    });

    it('shows a script that transcribes a file of raw audio', async () => {
      await open('');
      await page.getByRole('combobox', { name: 'Language' }).fill('English');
      await page.getByRole('option', { name: 'English' }).click();
      await writeFile(join(folder, 'live.mjs'), await codeOf('script'));
      const env = { ...process.env, TANDEM_API_KEY: API_KEY };
      const run = { cwd: folder, env, timeout: 60_000 };
      const { stdout, stderr } = await promisify(execFile)(process.execPath, ['live.mjs', 'speech.raw'], run);
      expect(stdout, stderr).toMatch(UNDERSTOOD);
    });
  });

  describe('text to speech', () => {
    it('plays a text, marks its words, and shows its cost', async () => {
      await open('?tab=speech');
      await page.getByRole('radio', { name: /Emily/ }).first().waitFor();
      await picture(page, 'playground-speech-empty');
      await expectGood();
      await page.getByRole('textbox', { name: 'Text' }).fill(`One, two, three, four. ${HOSTILE}`);
      await page.getByRole('button', { name: 'Synthesise' }).click();
      await page.getByText('Cost', { exact: true }).waitFor();
      await expectPlayed();
      await expectWordMarked();
      await picture(page, 'playground-speech');
      await expectGood();
      await expectHarmless();
    });

    it.each(['Ogg Opus', 'WAV', 'Mu-law, raw (telephone)'])('plays and downloads %s', async (format) => {
      await open('?tab=speech');
      await page.getByRole('combobox', { name: 'Format' }).click();
      await page.getByRole('option', { name: format }).click();
      await page.getByRole('button', { name: 'Synthesise' }).click();
      await expectPlayed();
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Download' }).click(),
      ]);
      expect((await stat(await download.path())).size).toBeGreaterThan(1_000);
    });

    it('plays a sample of a voice', async () => {
      await open('?tab=speech');
      await page.getByRole('combobox', { name: 'Language' }).fill('Hindi');
      await page.getByRole('option', { name: 'Hindi' }).click();
      await page
        .getByRole('button', { name: /Play a sample of/ })
        .first()
        .click();
      const isPlayed = '[...document.querySelectorAll("audio")].some(({ currentTime }) => currentTime > 0)';
      await untilTruthy(() => page.evaluate<boolean>(isPlayed));
      expect(new URL(page.url()).searchParams.get('lang')).toBe('hi');
      expect(await page.getByRole('radio').count()).toBeGreaterThan(1);
    });

    it('explains a mistake in SSML', async () => {
      await open('?tab=speech');
      await page.getByText('SSML', { exact: true }).click();
      await page.getByRole('textbox', { name: 'SSML' }).fill('<speak><blink>Hello</blink></speak>');
      await page.getByRole('button', { name: 'Synthesise' }).click();
      await page.getByRole('alert').getByText(/blink/).waitFor();
    });

    it('shows a command that writes the audio to a file', async () => {
      await open('?tab=speech');
      await page.getByText('Text', { exact: true }).last().click();
      await page.getByRole('textbox', { name: 'Text' }).fill(`It's "5 $HOME" \\ \`id\`\nand <a> new line`);
      await page.getByRole('slider', { name: 'Pitch' }).press('ArrowRight');
      await run('command');
      expect((await stat(join(folder, 'speech.mp3'))).size).toBeGreaterThan(1_000);
    });
  });

  describe('correction', () => {
    it('loads its form when the network is back', async () => {
      await open('?tab=speech');
      await page.context().setOffline(true);
      await page.getByRole('tab', { name: 'Correction' }).click();
      await page.getByRole('status', { name: 'Loading' }).waitFor();
      await page.waitForRequest((request) => request.url().endsWith('/user'));
      await page.context().setOffline(false);
      await page.getByRole('button', { name: 'Correct', exact: true }).waitFor();
    });

    it('shows what it changed word by word, and the corrected text', async () => {
      await open('?tab=correction');
      await page.getByRole('textbox', { name: 'Text' }).fill(`i dont know ${HOSTILE}`);
      await page.getByRole('button', { name: 'Correct', exact: true }).click();
      await page.locator('del').getByText('dont').waitFor();
      expect(await page.locator('ins').getByText("don't").count()).toBe(1);
      await page.getByText('Cost', { exact: true }).waitFor();
      await picture(page, 'playground-correction');
      await expectGood();
      await page.getByText('Corrected text', { exact: true }).click();
      await page.getByText(`I don't know ${HOSTILE}`).waitFor();
      await expectHarmless();
    });

    it('shows a text that is written from right to left with its full stop at the left', async () => {
      await open('?tab=correction&show=text');
      await page.getByRole('textbox', { name: 'Text' }).fill('مرحبا بكم.');
      await page.getByRole('button', { name: 'Correct', exact: true }).click();
      const output = page.getByRole('region', { name: 'Corrected text' });
      await output.getByText('مرحبا بكم.').waitFor();
      const leftOf = (index: number) =>
        page.evaluate<number>(`(() => {
          const range = document.createRange();
          const text = document.createTreeWalker(document.querySelector('.output'), NodeFilter.SHOW_TEXT).nextNode();
          range.setStart(text, ${index});
          range.setEnd(text, ${index + 1});
          return range.getBoundingClientRect().left;
        })()`);
      expect(await leftOf('مرحبا بكم'.length)).toBeLessThan(await leftOf(0));
    });

    it('shows a command that corrects the same text', async () => {
      await open('?tab=correction');
      await page.getByRole('textbox', { name: 'Dictionary' }).fill("tandam = Tandem's\num =");
      await page.getByRole('textbox', { name: 'Text' }).fill("tandam isn't $HOME");
      expect(JSON.parse(await run('command')).choices[0].message.content).toContain("Tandem's isn't $HOME");
    });
  });

  describe('memory', () => {
    it('adds a text and finds it, with the reason', async () => {
      await open('?tab=memory');
      await page.getByText('Nothing stored yet').waitFor();
      await picture(page, 'playground-memory-empty');
      await page.getByRole('textbox', { name: 'Text' }).fill(`The brass lantern hangs in the harbour. ${HOSTILE}`);
      await page.getByRole('textbox', { name: 'Title' }).fill(HOSTILE);
      await page.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByText(/Added to .*Cost/).waitFor();
      await page.getByRole('textbox', { name: 'Search' }).fill('brass lantern');
      await page.keyboard.press('Enter');
      await page.getByText('1 memory found').waitFor();
      await page.getByText('Keywords: 100%').waitFor();
      await page.getByText(/Found by its words/).waitFor();
      await picture(page, 'playground-memory');
      await expectGood();
      await page.getByText('Context for a prompt').click();
      await page.getByRole('button', { name: 'Search', exact: true }).last().click();
      await page.getByText(/From 1 memory/).waitFor();
      await expectHarmless();
    });

    it('shows a command that searches', async () => {
      await open('?tab=memory');
      await page.getByRole('textbox', { name: 'Search' }).fill(`"brass lantern's" -'$x'`);
      const found = { memory: expect.stringContaining('The brass lantern') };
      expect(JSON.parse(await run('command'))).toMatchObject({ success: true, data: { results: [found] } });
    });
  });

  describe('without a language model', () => {
    it('says how to configure one for the judge, and when the judge is asked', async () => {
      await open('?tab=judge&candidate=text');
      await page.getByText('No language model is configured').waitFor();
      await picture(page, 'playground-judge-unconfigured');
      await expectGood();
      await page.getByRole('button', { name: 'Create an example' }).click();
      await page.getByRole('combobox', { name: 'Rubric' }).waitFor();
      await page.getByRole('textbox', { name: 'Transcript' }).fill('agent: Good morning, Asha.');
      await page.getByRole('button', { name: 'Evaluate' }).click();
      await page.getByRole('alert').getByText('LLM_MODEL_PATH', { exact: false }).waitFor();
    });

    it('says how to configure one for a chat, and keeps the message', async () => {
      await open('?tab=chat');
      await page.getByRole('textbox', { name: 'Message' }).fill('Hello');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText('LLM_BASE_URL', { exact: false }).waitFor();
      await untilTruthy(async () => (await page.getByRole('textbox', { name: 'Message' }).inputValue()) === 'Hello');
      await picture(page, 'playground-chat-unconfigured');
      await expectGood();
    });
  });

  it('fits every screen and breaks no policy', async () => {
    for (const tab of ['live', 'speech', 'chat', 'correction', 'memory', 'judge']) {
      await open(`?tab=${tab}`);
      await page.getByText('The same in code').waitFor();
      await expectFits(page);
      await page.setViewportSize({ width: 360, height: 800 });
      await picture(page, `playground-${tab}-360`);
      await page.setViewportSize({ width: 1280, height: 800 });
    }
    expect(errorsOf(page)).toEqual([]);
  });
});

async function open(search: string, where = page): Promise<void> {
  await where.goto(`${console.url}/console/playground${search}`);
  await where.getByRole('heading', { name: 'Playground' }).waitFor();
}

async function expectGood(where = page): Promise<void> {
  await expectAccessible(where);
  expect(errorsOf(where)).toEqual([]);
}

async function expectHarmless(): Promise<void> {
  expect(await isPwned(page)).toBe(false);
}

/** Plays the speech again if it ended first, as on a busy machine. */
async function expectWordMarked(): Promise<void> {
  await untilTruthy(() =>
    page.evaluate<boolean>(`(() => {
      const player = document.querySelector('audio[controls]');
      if (player.ended) void player.play();
      return document.querySelector('[data-spoken]') !== null;
    })()`),
  );
}

async function expectPlayed(): Promise<void> {
  await untilTruthy(() =>
    page.evaluate<boolean>(`(() => {
      const player = document.querySelector('audio[controls]');
      return player !== null && player.duration > 0.5 && player.currentTime > 0;
    })()`),
  );
}

async function codeOf(label: string): Promise<string> {
  return (await page.getByRole('region', { name: label, exact: true }).textContent()) ?? '';
}

/** Runs the command that the page shows. */
async function run(label: string): Promise<string> {
  expect(pathOf('curl'), 'curl is installed').not.toBeNull();
  const env = { ...process.env, TANDEM_API_KEY: API_KEY };
  const { stdout } = await promisify(execFile)('sh', ['-c', await codeOf(label)], { cwd: folder, env });
  return stdout;
}

/** Between half a second and a second and a half of silence, as of a person who speaks and then waits. */
function goForward(): Int16Array<ArrayBuffer> {
  const spoken = spokenUtterances().find(({ text }) => text === 'go forward ten meters')!;
  const padded = new Int16Array(spoken.samples.length + 2 * 16_000);
  padded.set(spoken.samples, 8_000);
  return padded;
}

function wavOf(samples: Int16Array<ArrayBuffer>): Buffer {
  const bytes = Buffer.from(samples.buffer);
  return Buffer.concat([wavHeader({ channels: 1, sampleRateHz: 16_000 }, bytes.length), bytes]);
}
