import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pathOf } from '../peers/programs.ts';

/**
 * Debian's Chromium; null if not installed. Without the windows of a desktop it takes an eighth less CPU time in the
 * tests of the console.
 */
export const CHROMIUM = pathOf('chromium-headless-shell') ?? pathOf('chromium');

/**
 * Saves CPU time: each window would load the page of the address bar's suggestions, which takes a second. The other
 * features are those that Playwright disables, because Chromium only obeys the last such flag.
 */
export const FRUGAL_FLAGS = [
  `--disable-features=${[
    ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'WebUIOmniboxFullPopup'],
    ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades'],
    ...[
      'HttpsFirstBalancedModeAutoEnable',
      'LensOverlay',
      'MediaRouter',
      'PaintHolding',
      'ThirdPartyStoragePartitioning',
    ],
    ...['AvoidCorsURLLoaderRestartOnRedirect', 'OptimizationHints', 'NetworkTimeServiceQuerying', 'AimEnabled'],
    ...['PreconnectToSearch'],
  ]}`,
];

export interface Page {
  /** Evaluates an expression in the page and awaits its value. */
  evaluate<T = unknown>(expression: string): Promise<T>;
  reload(): Promise<void>;
}

/**
 * Headless Chromium whose microphone plays a WAV file. Controlled over the DevTools pipe in one page of code, since the
 * usual drivers are large and download browsers.
 */
export class Chromium implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>();
  #awaited: { event: string; sessionId: string; resolve: () => void }[] = [];
  #nextId = 1;

  private constructor(child: ChildProcess, profile: string) {
    this.#child = child;
    this.#profile = profile;
    let rest = Buffer.alloc(0);
    (child.stdio[4] as Readable).on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        this.#receive(JSON.parse(rest.subarray(0, end).toString()));
        rest = rest.subarray(end + 1);
      }
    });
  }

  static async start({ microphone }: { microphone: string }): Promise<Chromium> {
    const profile = await mkdtemp(join(tmpdir(), 'tandem-chromium-'));
    const flags = [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--mute-audio', '--no-first-run', '--disable-extensions'],
      // A second phone hides the page of the first.
      ...['--disable-background-timer-throttling', '--disable-renderer-backgrounding'],
      ...[
        '--disable-background-networking',
        '--disable-dev-shm-usage',
        '--allow-loopback-in-peer-connection',
        '--autoplay-policy=no-user-gesture-required',
      ],
      ...['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', '--remote-debugging-pipe'],
      ...[`--use-file-for-fake-audio-capture=${microphone}`, `--user-data-dir=${profile}`, ...FRUGAL_FLAGS],
    ];
    const stdio = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] as const;
    return new Chromium(spawn(CHROMIUM!, flags, { stdio: [...stdio], detached: true }), profile);
  }

  async open(url: string): Promise<Page> {
    const { targetId } = await this.#send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' });
    const attach = { targetId, flatten: true };
    const { sessionId } = await this.#send<{ sessionId: string }>('Target.attachToTarget', attach);
    const evaluate = async <T>(expression: string): Promise<T> => {
      const parameters = { expression, awaitPromise: true, returnByValue: true };
      const { result, exceptionDetails } = await this.#send<Evaluated>('Runtime.evaluate', parameters, sessionId);
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value as T;
    };
    const untilLoaded = () =>
      evaluate(`new Promise((resolve) => {
        const look = () => (globalThis.tests ? resolve() : setTimeout(look, 10));
        look();
      })`);
    await this.#send('Page.enable', {}, sessionId);
    await this.#send('Page.navigate', { url }, sessionId);
    await untilLoaded();
    const reload = async () => {
      const isLoaded = this.#once('Page.loadEventFired', sessionId);
      await this.#send('Page.reload', {}, sessionId);
      await isLoaded;
      await untilLoaded();
    };
    return { evaluate, reload };
  }

  #once(event: string, sessionId: string): Promise<void> {
    return new Promise((resolve) => {
      this.#awaited.push({ event, sessionId, resolve });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, 'exit');
    // The whole group, because Debian's program is a shell script that starts the browser.
    process.kill(-this.#child.pid!, 'SIGKILL');
    await gone;
    for (const { reject } of this.#answers.values()) reject(new Error('the browser was closed'));
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  #send<T>(method: string, params: object, sessionId?: string): Promise<T> {
    const id = this.#nextId++;
    const answer = Promise.withResolvers<unknown>();
    this.#answers.set(id, answer);
    const timer = setTimeout(() => answer.reject(new Error(`the browser did not answer ${method}`)), PATIENCE_MS);
    answer.promise.finally(() => clearTimeout(timer)).catch(() => {});
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return answer.promise as Promise<T>;
  }

  #receive({ id, result, error, method, sessionId }: Received): void {
    this.#awaited = this.#awaited.filter((awaited) => {
      if (awaited.event !== method || awaited.sessionId !== sessionId) return true;
      awaited.resolve();
      return false;
    });
    const answer = id === undefined ? undefined : this.#answers.get(id);
    if (answer === undefined) return;
    this.#answers.delete(id!);
    if (error) answer.reject(new Error(error.message));
    else answer.resolve(result);
  }
}

/** Slightly below the timeout of a test. */
const PATIENCE_MS = 60_000;

interface Received {
  id?: number;
  result?: unknown;
  error?: { message: string };
  method?: string;
  sessionId?: string;
}

interface Evaluated {
  result: { value?: unknown };
  exceptionDetails?: { text: string; exception?: { description?: string } };
}
