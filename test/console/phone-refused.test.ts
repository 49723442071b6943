import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { cleanUp } from '../process/ready-server.ts';
import {
  type ConsoleFixture,
  canBrowse,
  errorsOf,
  expectAccessible,
  expectFits,
  picture,
  startConsole,
} from './console-fixture.ts';

describe.skipIf(!canBrowse)('the phone in the console, without what it needs', () => {
  let town: ConsoleFixture;
  let page: Page;

  beforeAll(async () => {
    // The server looks for the worker in the environment of its process.
    vi.stubEnv('MEDIASOUP_WORKER_BIN', 'none');
    town = await startConsole({}, { isMicrophoneDenied: true });
    page = await town.signedIn();
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await cleanUp();
  });

  it('says what to do about a blocked microphone, and about a server that cannot connect browsers', async () => {
    await page.goto(`${town.url}/console/phone`);
    await page.getByText('Your phone is off').waitFor();
    expect(await page.getByRole('button', { name: 'Call', exact: true }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Go available' }).click();
    const blocked = page.getByRole('alert').filter({ hasText: 'The microphone is blocked' });
    await blocked.getByText('allow the microphone for this page').waitFor();
    const unavailable = page.getByRole('alert').filter({ hasText: 'This server cannot connect browsers yet' });
    await unavailable.getByText('bin/tandem webrtc install', { exact: true }).waitFor();
    await expectAccessible(page);
    await expectFits(page, [360]);
    await picture(page, 'phone-refused');
    await blocked.getByRole('button', { name: 'Try again' }).click();
    await unavailable.waitFor();
  });

  it('shows no names of devices before the microphone is allowed, and plays a test tone', async () => {
    await page.getByRole('combobox', { name: 'Microphone' }).waitFor();
    await page.getByRole('button', { name: 'Play a test tone' }).click();
    await page.getByRole('button', { name: 'Test the microphone' }).click();
    await page.getByText('Click the icon at the left of the address bar').last().waitFor();
    await page.getByRole('button', { name: 'Test the microphone' }).waitFor();
  });

  it('says to a viewer that another role is needed', async () => {
    const viewer = await town.signedIn();
    await viewer.route('**/user', async (route) => {
      const answer = await route.fetch();
      const text = (await answer.text()).replaceAll('"role":"owner"', '"role":"viewer"');
      await route.fulfill({ response: answer, body: text });
    });
    await viewer.goto(`${town.url}/console/phone`);
    await viewer.getByText('Your role cannot take calls').waitFor();
    await expectAccessible(viewer);
    expect(errorsOf(viewer)).toEqual([]);
  });

  it('causes no error in the page', () => {
    expect(errorsOf(page)).toEqual([]);
  });
});
