import { useEffect } from 'react';
import { useSession } from '../app/session.ts';
import { continuePhone, followWorkspace, usePhone } from './agent-phone.ts';
import { callerOf } from './call-status.tsx';
import { useCallShortcuts } from './shortcuts.tsx';
import { useSupervision } from './supervision.ts';
import { useRingCue } from './use-ring-cue.ts';

/** Keeps the phone running on every page. Returns whether the dock has content. */
export function useDock({ isPhonePage }: { isPhonePage: boolean }): boolean {
  const { call } = usePhone();
  const supervision = useSupervision();
  useEffect(() => void continuePhone(), []);
  usePhoneOfWorkspace();
  useRingCue(call?.phase === 'ringing' ? callerOf(call) : null);
  useCallShortcuts(call !== null);
  return (call !== null && !isPhonePage) || supervision !== null;
}

function usePhoneOfWorkspace(): void {
  const { workspace } = useSession();
  const { call, link } = usePhone();
  // biome-ignore lint/correctness/useExhaustiveDependencies: it may change when the call or the phone ends
  useEffect(() => followWorkspace(workspace.id), [workspace.id, call === null, link === 'online']);
}
