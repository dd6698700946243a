"""A name's words decide whether it holds a secret."""

import pytest

from sessionmgr.process.environment import secret_values
from sessionmgr.process.secret_names import is_secret_name

SECRET = """
OPENAI_API_KEY SECRET_KEY_BASE MYSQL_PWD TOKEN_GITHUB STRIPE_KEY_LIVE VAULT_TOKEN_PROD
GOOGLE_APPLICATION_CREDENTIALS_JSON AZURE_CREDENTIALS DB_PASSPHRASE SLACK_WEBHOOK_URL
AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY JWT_SIGNING COOKIE GITHUB_TOKEN NPM_TOKEN API_KEY_2
SSH_PRIVATE_KEY SENTRY_DSN CONNECTION_STRING PGPASSWORD HF_TOKEN ENCRYPTION_KEY_V1 apikey
Authorization Proxy-Authorization X-Api-Key x-api-key bearer_token bearerToken apiKey MY_CREDS
client_secret DB_PASSWORD_2 OPENAI_APIKEY NPM_CONFIG__AUTH GH_PAT SMTP_PASS SSHPASS APP_SECRETS
DOCKER_AUTH_CONFIG MINIO_ACCESSKEY TOKEN_X API_KEYS set-cookie KEY TOKEN SECRET AZURE_STORAGE_SAS
""".split()

HARMLESS = """
PATH HOME PWD OLDPWD KEYBOARD MONKEY TOKENIZERS_PARALLELISM PASSAGE BYPASS COMPASS MAX_TOKENS
SSH_AUTH_SOCK XAUTHORITY AUTHOR GOOGLE_APPLICATION_CREDENTIALS SSH_KEY_PATH AWS_TOKEN_FILE
PASSWORD_STORE_DIR KEYMAP HOTKEYFUL SECRETARY TOKEN_LIMIT OAUTH_TOKEN_URL DISPLAY LC_ALL PATTERN
bearer_token_env_var content-type CLAUDE_CODE_MAX_OUTPUT_TOKENS COOKIE_DOMAIN JWT_ISSUER
apiKeyHelper CLAUDE_CODE_API_KEY_HELPER_TTL_MS env_key_instructions SIGNING_ALGORITHM TOKEN_HOST
""".split()


@pytest.mark.parametrize("name", SECRET)
def test_what_such_a_variable_holds_is_kept_out(name: str) -> None:
    assert is_secret_name(name)
    assert secret_values({name: "s3cr3t-Value-12345"}) == ("s3cr3t-Value-12345",)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_name_that_only_resembles_one_of_a_secret_hides_nothing(name: str) -> None:
    assert not is_secret_name(name)
    assert secret_values({name: "s3cr3t-Value-12345"}) == ()


@pytest.mark.parametrize("value", ["1", "true", "none", "12345"])
def test_a_value_too_short_to_be_a_secret_is_none_whatever_its_name(value: str) -> None:
    assert secret_values({"MY_TOKEN": value}) == ()
