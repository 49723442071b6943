import { useEffect } from 'react';
import { callText, phoneText } from '../text/phone.ts';
import { startRinging } from './ringer.ts';

/** Rings, shows the caller in the tab's title, and notifies the user of a hidden tab. Null: nothing rings. */
export function useRingCue(caller: string | null): void {
  useEffect(() => {
    if (caller === null) return;
    const stopRinging = startRinging();
    const title = document.title;
    const cue = `${callText.incoming}: ${caller}`;
    document.title = cue;
    const notification = notify(caller);
    return () => {
      stopRinging();
      // Another page may have set its own title.
      if (document.title === cue) document.title = title;
      notification?.close();
    };
  }, [caller]);
}

function notify(caller: string): Notification | null {
  if (!document.hidden || globalThis.Notification?.permission !== 'granted') return null;
  try {
    const notification = new Notification(phoneText.notification(caller), { tag: 'tandem-call' });
    notification.onclick = () => {
      window.focus();
      notification.close();
    };
    return notification;
  } catch {
    // Chrome on Android only notifies from service workers.
    return null;
  }
}
