"""Columns that most Tables have."""

from podstatus.apiserver.strategies.base import Column

NAME = Column(name="Name", format="name", description="The object's name.")
AGE = Column(name="Age", description="How long ago the object was created.")
