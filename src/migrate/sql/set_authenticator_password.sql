select set_config('sluice.authenticator_password', $1, false);
