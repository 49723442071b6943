import './phone.css';
import { AppShell } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect } from 'react';
import { phoneText } from '../text/phone.ts';
import { usePhone } from './agent-phone.ts';
import { DockCall } from './dock-call.tsx';
import { DockSupervision } from './dock-supervision.tsx';
import { useSupervision } from './supervision.ts';

interface DockProps {
  /** The phone page shows the call itself. */
  isPhonePage: boolean;
  /** Called with the height in pixels when it changes. */
  onHeight: (height: number) => void;
}

const BORDER_PX = 1;

/** Bar at the bottom of every page with the current call and supervision. */
export function Dock({ isPhonePage, onHeight }: DockProps) {
  const { call, ...phone } = usePhone();
  const supervision = useSupervision();
  const { ref, height } = useElementSize();
  useEffect(() => {
    if (height > 0) onHeight(height + BORDER_PX);
    // Keeps the focused element above the dock (WCAG 2.4.11).
    document.documentElement.style.setProperty('scroll-padding-bottom', `${height}px`);
    return () => void document.documentElement.style.removeProperty('scroll-padding-bottom');
  }, [height, onHeight]);
  return (
    <AppShell.Footer component="section" aria-label={phoneText.region}>
      <div ref={ref}>
        {call !== null && !isPhonePage && <DockCall key={call.callId} call={call} phone={{ ...phone, call }} />}
        {supervision !== null && <DockSupervision supervision={supervision} />}
      </div>
    </AppShell.Footer>
  );
}
