import pytest

from sessionmgr.model import Json
from sessionmgr.testing.model_server import ModelRequest, RequestImage
from sessionmgr.testing.model_server.images import find_images

PNG = RequestImage("image/png", "AAAA")
URL = RequestImage("", "http://example.invalid/a.png")


@pytest.mark.parametrize(
    ("part", "image"),
    [
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            },
            PNG,
        ),
        ({"type": "image", "source": {"type": "url", "url": URL.data}}, URL),
        ({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, PNG),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, PNG),
        ({"type": "image_url", "image_url": {"url": URL.data}}, URL),
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, PNG),
    ],
)
@pytest.mark.parametrize("member", ["messages", "input", "contents"])
def test_images_are_found_in_the_form_of_each_api(
    part: Json, image: RequestImage, member: str
) -> None:
    said: Json = [{"role": "user", "content": [{"type": "text", "text": "look"}, part, part]}]
    request = ModelRequest(face="test", model="m", items=(), body={member: said})
    assert request.images == (image, image)


@pytest.mark.parametrize("said", [None, "a", 1, [], {}, [{"type": "image_url"}]])
def test_other_values_have_no_images(said: Json) -> None:
    assert list(find_images(said)) == []
