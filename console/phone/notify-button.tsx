import { Button, Tooltip } from '@mantine/core';
import { Bell } from 'lucide-react';
import { useState } from 'react';
import { phoneText } from '../text/phone.ts';

/** Requests permission for notifications. Hidden once the user has decided, or if unsupported. */
export function NotifyButton() {
  const [permission, setPermission] = useState(() => globalThis.Notification?.permission);
  if (permission !== 'default') return null;
  const ask = async () => setPermission(await Notification.requestPermission());
  return (
    <Tooltip label={phoneText.notifyHint} multiline maw={260}>
      <Button variant="default" leftSection={<Bell size={16} aria-hidden />} onClick={() => void ask()}>
        {phoneText.notify}
      </Button>
    </Tooltip>
  );
}
