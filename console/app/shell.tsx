import { Anchor, AppShell, Burger, Button, Group, Kbd, ScrollArea, Text, Title } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { Search } from 'lucide-react';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useDock } from '../phone/use-dock.ts';
import { shellText } from '../text/app.ts';
import { AccountMenu } from './account-menu.tsx';
import { ConnectionBanner } from './connection-banner.tsx';
import { patiently } from './load.ts';
import { Navigation } from './navigation.tsx';
import { openPalette, Palette } from './palette.tsx';
import { useSession } from './session.ts';
import { SessionGuard } from './session-guard.tsx';

const Dock = lazy(async () => ({ default: (await patiently(() => import('../phone/dock.tsx'))).Dock }));

/** The frame around every page: navigation, workspace, search, account. */
export function Shell() {
  return (
    <SessionGuard>
      <Frame />
    </SessionGuard>
  );
}

function Frame() {
  const [isOpen, menu] = useDisclosure(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const isPhonePage = path === '/phone';
  const hasDock = useDock({ isPhonePage });
  const [dockHeight, setDockHeight] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page closes the menu of a small screen
  useEffect(menu.close, [path]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      footer={{ height: dockHeight, collapsed: !hasDock }}
      padding="md"
    >
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" wrap="nowrap">
          <a className="skip-link" href="#content">
            {shellText.skip}
          </a>
          <Burger
            opened={isOpen}
            onClick={menu.toggle}
            hiddenFrom="sm"
            size="sm"
            aria-label={isOpen ? shellText.closeMenu : shellText.openMenu}
          />
          <Title order={2} size="h4" component="div">
            <Anchor component={Link} to="/live" underline="never" c="inherit" inherit className="unbroken">
              {shellText.title}
            </Anchor>
          </Title>
          <Button
            variant="default"
            size="xs"
            ml="auto"
            leftSection={<Search size={14} aria-hidden />}
            rightSection={
              <Kbd size="xs" visibleFrom="xs">
                {shellText.searchHint}
              </Kbd>
            }
            onClick={openPalette}
          >
            {shellText.search}
          </Button>
          <AccountMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={shellText.navigation}>
        <AppShell.Section grow component={ScrollArea}>
          <Navigation />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <ConnectionBanner />
        <PasswordReminder />
        <Outlet />
      </AppShell.Main>
      {hasDock && (
        <Suspense>
          <Dock isPhonePage={isPhonePage} onHeight={setDockHeight} />
        </Suspense>
      )}
      <Palette />
    </AppShell>
  );
}

/** Shown to users without a password, such as an owner who arrived by a one-time link. */
function PasswordReminder() {
  const { has_password: hasPassword } = useSession();
  if (hasPassword) return null;
  return (
    <Group mb="md" gap="xs">
      <Text size="sm">{shellText.setPassword}</Text>
      <Anchor component={Link} to="/account" size="sm">
        {shellText.setPasswordAction}
      </Anchor>
    </Group>
  );
}
