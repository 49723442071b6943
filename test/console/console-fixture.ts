import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { CHROMIUM, FRUGAL_FLAGS } from '../browser/chromium.ts';
import { eventually } from '../eventually.ts';
import { clean } from '../process/ready-server.ts';
import { type ConsoleServer, startConsoleServer } from './console-server.ts';

/** The console as people have it: the whole server, and Debian's Chromium driven by Playwright. */

export const canBrowse = CHROMIUM !== null;

export interface ConsoleFixture extends ConsoleServer {
  browser: Browser;
  /** A browser profile that is logged in as the owner. */
  signedIn(options?: ContextOptions): Promise<Page>;
}

/** Less than a test may take, so that a failure names the element that it waited for. */
const ACTION_TIMEOUT_MS = 45_000;

type ContextOptions = Parameters<Browser['newContext']>[0];

/** Starts a server and a browser, which `cleanUp` of `ready-server.ts` closes. */
export async function startConsole(
  env: Record<string, string> = {},
  browserOptions: BrowserOptions = {},
): Promise<ConsoleFixture> {
  const server = await startConsoleServer(env);
  const browser = await startBrowser(browserOptions);
  let owner: Awaited<ReturnType<BrowserContext['storageState']>> | undefined;
  return {
    ...server,
    browser,
    async signedIn(options = {}) {
      const context = await browser.newContext({ ...options, ...(owner && { storageState: owner }) });
      context.setDefaultTimeout(ACTION_TIMEOUT_MS);
      if (owner === undefined) {
        const token = new URL(await server.ownerLogin(), server.url).searchParams.get('token');
        const answer = await context.request.post(`${server.url}/auth/login-link`, { data: { token, cookie: true } });
        if (!answer.ok()) throw new Error(`the login failed: ${await answer.text()}`);
        owner = await context.storageState();
      }
      const page = await context.newPage();
      failOnPageErrors(page);
      return page;
    },
  };
}

interface BrowserOptions {
  /** WAV file that the microphone says again and again. */
  microphone?: string;
  /** Refuses the microphone, as a user may. */
  isMicrophoneDenied?: boolean;
}

export async function startBrowser({ microphone, isMicrophoneDenied = false }: BrowserOptions = {}): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM!,
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      ...FRUGAL_FLAGS,
      '--autoplay-policy=no-user-gesture-required',
      '--allow-loopback-in-peer-connection',
      '--use-fake-device-for-media-stream',
      `--use-fake-ui-for-media-stream${isMicrophoneDenied ? '=deny' : ''}`,
      ...(microphone === undefined ? [] : [`--use-file-for-fake-audio-capture=${microphone}`]),
    ],
  });
  clean.push(() => browser.close());
  return browser;
}

/**
 * Violations that axe-core finds in a page. It does not preload style sheets, because it would copy them into a document
 * where the policy of the page blocks them.
 */
async function violationsOf(page: Page, rules: { type: 'tag' | 'rule'; values: readonly string[] }): Promise<string[]> {
  if (await page.evaluate<boolean>('!globalThis.axe')) await page.evaluate(axe.source);
  const options = JSON.stringify({ preload: false, resultTypes: ['violations'], runOnly: rules });
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${options})`);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** Levels A and AA. */
const WCAG_2_2 = {
  type: 'tag',
  values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
} as const;
/** The only rule that depends on the color scheme. */
const CONTRAST = { type: 'rule', values: ['color-contrast'] } as const;

/** Checks a page as it is shown now: by all rules in light colors, and the contrast in dark ones. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const [colorScheme, rules] of [
    ['light', WCAG_2_2],
    ['dark', CONTRAST],
  ] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    expect(await violationsOf(page, rules), colorScheme).toEqual([]);
  }
}

/** The narrowest window that the console supports, a tablet and a wide screen, in pixels. */
const WIDTHS = [360, 768, 2560];

/** The innermost elements that make the page scroll sideways. */
const OVERFLOWING = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const isOutside = (element) => element.getBoundingClientRect().right > clientWidth;
  return [...document.body.querySelectorAll('*')]
    .filter((element) => isOutside(element) && ![...element.children].some(isOutside))
    .map((element) => element.outerHTML.slice(0, 300))
    .concat(scrollWidth + ' of ' + clientWidth + ' pixels');
})()`;

/** Checks that the page does not scroll sideways at any width. */
export async function expectFits(page: Page, widths = WIDTHS): Promise<void> {
  const size = page.viewportSize();
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 });
    // The layout follows a change of the width with a transition.
    await eventually(async () =>
      expect(await page.evaluate<string[]>(OVERFLOWING), `${page.url()} at ${width} pixels`).toEqual([]),
    );
  }
  if (size) await page.setViewportSize(size);
}

/** Checks a page as it is shown now, at every width, and writes a picture of it in dark and in light colors. */
export async function expectPresentable(page: Page, name: string): Promise<void> {
  await expectAccessible(page);
  await picture(page, `${name}-dark`);
  await page.emulateMedia({ colorScheme: 'light' });
  await expectFits(page);
  await picture(page, name);
}

/** Markup for every text that strangers control. It runs code in the page, if the page ever takes it for markup. */
export const HOSTILE = '<img src=x onerror="window.pwned=1">';

/** Whether hostile text was run as code. */
export function isPwned(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('"pwned" in globalThis');
}

/** Writes a picture for a person to look at, where `CONSOLE_SCREENSHOTS` names a folder. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.CONSOLE_SCREENSHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** An exception in the page, or a violation of its content security policy, fails the test that reads the list. */
const pageErrors = new WeakMap<Page, string[]>();

export function errorsOf(page: Page): readonly string[] {
  return pageErrors.get(page) ?? [];
}

function failOnPageErrors(page: Page): void {
  const errors: string[] = [];
  pageErrors.set(page, errors);
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy/.test(message.text())) errors.push(message.text());
  });
}
